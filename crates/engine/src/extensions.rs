//! Services of which the engine knows nothing: whoever assembles the program registers them, kinds ask for them by type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Services by type. Cheap to clone.
#[derive(Clone, Default)]
pub struct Extensions(FxHashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// With a service; one of the same type that was there is replaced.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, service: Arc<T>) -> Extensions {
        self.0.insert(TypeId::of::<T>(), service);
        self
    }

    /// The service of this type, if one was registered.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_found_by_its_type() {
        let services = Extensions::default().with(Arc::new(5u8)).with(Arc::new("text"));
        assert_eq!(services.get::<u8>(), Some(&5));
        assert_eq!(services.get::<&str>(), Some(&"text"));
        assert_eq!(services.get::<u16>(), None);
    }
}
