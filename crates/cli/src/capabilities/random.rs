//! Unpredictable bytes.

use std::fs::File;
use std::io::Read;

use setpoint_value::Random;

/// The kernel's generator.
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        // Predictable bytes in the place of random ones would be worse than no answer.
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(buffer))
            .expect("the kernel's random generator can be read, see random(4)");
    }
}
