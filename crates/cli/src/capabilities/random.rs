//! Unpredictable bytes.

use rustix::rand::{GetRandomFlags, getrandom};
use setpoint_value::Random;

/// The kernel's generator.
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        let mut filled = 0;
        while filled < buffer.len() {
            // Asked directly, because `/dev/urandom` may be missing, or be something else.
            match getrandom(&mut buffer[filled..], GetRandomFlags::empty()) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                // Predictable bytes in the place of random ones would be worse than no answer.
                Err(error) => panic!("getrandom(2), which every kernel since 3.17 has, fails: {error}"),
            }
        }
    }
}
