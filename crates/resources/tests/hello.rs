//! The `hello` kind: a file with a greeting.

use setpoint_engine::{Apply, DriftValue, Failure, Resource, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace};

/// A file with a greeting.
#[derive(Debug, Resource)]
#[resource(kind = "hello")]
pub(crate) struct Hello {
    /// Absolute path of the file. Unset: the resource's name.
    #[param(default_from = "name")]
    path: String,
    /// Who is greeted.
    #[param(default = "world".to_owned())]
    whom: String,
}

impl Hello {
    fn greeting(&self) -> Vec<u8> {
        format!("Hello, {}!\n", self.whom).into_bytes()
    }
}

#[async_trait]
impl Resource for Hello {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if let Err(error) = AbsolutePath::new(&self.path) {
            invalid.push(Invalid::parameter("path", error.to_string()));
        }
    }

    fn watches(&self) -> Vec<Watch> {
        AbsolutePath::new(&self.path)
            .into_iter()
            .map(Watch::path)
            .collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path =
            AbsolutePath::new(&self.path).map_err(|error| Failure::new("use the path").because(error))?;
        let entry = Entry::at(&path)?;
        let is = match entry.stat()? {
            Some(_) => Some(entry.read()?),
            None => None,
        };
        let want = self.greeting();
        if is.as_ref() != Some(&want)
            && apply.drift(
                "content",
                is.as_deref().map(DriftValue::content),
                DriftValue::content(&want),
            )
        {
            apply.handle().committer().replace(Replace::bytes(path, want))?;
        }
        Ok(())
    }
}
