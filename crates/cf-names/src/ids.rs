//! Numbers by which the parts of a resolved model refer to each other.

setpoint_diagnostics::ids! {
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
