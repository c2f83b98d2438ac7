//! The service that ends the program.

use std::fmt;

/// Takes the wish of an `exit` resource. Registered by whoever assembles the program.
pub struct ProgramExit(Box<dyn Fn(u8) + Send + Sync>);

impl ProgramExit {
    /// Called with the status, on the thread of the run that wants the end; it returns at once.
    #[must_use]
    pub fn new(request: impl Fn(u8) + Send + Sync + 'static) -> ProgramExit {
        ProgramExit(Box::new(request))
    }

    /// Ends the program in order, with this status.
    pub fn request(&self, code: u8) {
        (self.0)(code);
    }
}

impl fmt::Debug for ProgramExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramExit")
    }
}
