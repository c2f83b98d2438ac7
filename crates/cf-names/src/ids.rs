//! Numbers by which the parts of a resolved model refer to each other.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into the vector of [`Model`](crate::hir::Model) that holds them.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A name, interned.
    Symbol;
    /// A namespace, which is a file.
    NamespaceId;
    /// An entity.
    EntityId;
    /// A typedef.
    TypedefId;
    /// An implementation.
    ImplementationId;
    /// An end of a relation.
    RelationId;
    /// An index.
    IndexId;
    /// A function that calls can name.
    FunctionId;
}
