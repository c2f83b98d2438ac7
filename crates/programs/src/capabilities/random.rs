//! Unpredictable bytes.

use setpoint_value::Random;

/// The kernel's generator.
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        setpoint_host::random::fill(buffer);
    }
}
