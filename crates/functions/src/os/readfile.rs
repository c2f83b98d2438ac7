//! `os.readfile`: the settled content of a file.

use std::io::ErrorKind;

use setpoint_value::native::{shown, text};
use setpoint_value::{CallContext, CallError, FollowedFile, Source, Subscription, Value, function};

use super::MODULE;

/// The content of a file.
///
/// The content is always that of a finished file: what is being rewritten is read when its writer closes it, or 50
/// milliseconds after the last change; what is replaced by renaming another file over it is read at once.
///
/// A missing file fails in a way that `<|>` catches. So does a path that is not absolute, is not that of a regular file,
/// holds more than 64 MiB, or leads through a link of a user who has no right to what it leads to.
#[function(
    signature = "func(filename str) str",
    parameters(
        /// An absolute path.
        filename,
    ),
    example(
        call = r#"os.readfile("/no/such/file") <|> "missing""#,
        result = r#""missing""#
    )
)]
pub(super) static READFILE: ReadFile = ReadFile;

pub(super) struct ReadFile;

impl Source for ReadFile {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let path = text(arguments, 0)?;
        Ok(Box::new(Reading {
            file: context.capabilities.files().follow(path, context.wake.clone()),
            path: path.to_owned(),
            shown: shown(&arguments[0]),
            last: None,
        }))
    }
}

struct Reading {
    path: String,
    /// The path as messages may show it.
    shown: String,
    file: Box<dyn FollowedFile>,
    last: Option<Result<Value, CallError>>,
}

impl Subscription for Reading {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let answer = match self.file.take()? {
            Ok(content) => Ok(Value::str(content)),
            Err(error) => {
                let message = format!("error reading file `{}`: {error}", self.shown);
                Err(match error.kind() {
                    ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::FileTooLarge => {
                        CallError::catchable(message)
                    }
                    _ => CallError::fatal(message),
                })
            }
        };
        if self.last.as_ref() == Some(&answer) {
            return None;
        }
        self.last = Some(answer.clone());
        Some(answer)
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let path = text(arguments, 0)?;
        if path != self.path {
            path.clone_into(&mut self.path);
            self.shown = shown(&arguments[0]);
            self.file = context.capabilities.files().follow(path, context.wake.clone());
            self.last = None;
            context.wake.wake();
        }
        Ok(())
    }
}
