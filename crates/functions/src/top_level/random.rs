//! `random1`: a random text that stays.

use setpoint_value::{CallContext, CallError, Random, Source, Subscription, Value, function};

use super::MODULE;

/// So many random letters, `a` to `z` and `A` to `Z`.
///
/// They stay until `length` changes or the program starts anew. A negative length, or one of more than 65535, is an error
/// that `<|>` does not catch.
#[function(
    stateful,
    unpredictable,
    signature = "func(length int) str",
    parameters(
        /// The number of letters, 0 to 65535.
        length,
    ),
    example(call = "len(random1(8))", result = "8")
)]
pub(super) static RANDOM1: RandomText = RandomText;

const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

pub(super) struct RandomText;

impl Source for RandomText {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let mut drawn = Drawn {
            length: None,
            answer: None,
        };
        drawn.draw(context, arguments)?;
        Ok(Box::new(drawn))
    }
}

struct Drawn {
    /// Of the text that was given last; none after a bad one.
    length: Option<i64>,
    answer: Option<Result<Value, CallError>>,
}

impl Drawn {
    fn draw(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let length = arguments
            .first()
            .and_then(Value::as_int)
            .ok_or_else(|| CallError::fatal("the length is not known"))?;
        if self.length == Some(length) {
            return Ok(());
        }
        self.length = None;
        let answer = match u16::try_from(length) {
            Ok(count) => {
                self.length = Some(length);
                Ok(Value::str(letters(context.capabilities.random(), count)))
            }
            Err(_) => Err(CallError::fatal("can't generate an invalid length")),
        };
        self.answer = Some(answer);
        context.wake.wake();
        Ok(())
    }
}

impl Subscription for Drawn {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        self.answer.take()
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        self.draw(context, arguments)
    }
}

fn letters(random: &dyn Random, count: u16) -> String {
    let count = usize::from(count);
    let mut text = String::with_capacity(count);
    let mut buffer = [0u8; 64];
    while text.len() < count {
        random.fill(&mut buffer);
        // Bytes from 208 on are thrown away: 208 is four times 52, so the rest is uniform.
        let drawn = buffer.iter().filter(|b| **b < 208);
        let letters = drawn.map(|b| char::from(LETTERS[usize::from(*b % 52)]));
        text.extend(letters.take(count - text.len()));
    }
    text
}
