//! What commands have in common on the command line.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use setpoint_mcl::CompileOptions;

use crate::capabilities::system_hostname;
use crate::failure::Failure;
use crate::later::CompileLater;
use crate::output::Output;

/// Which program, and how it is compiled.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProgramArguments {
    /// A `.mcl` file, a directory with `metadata.yaml` or `main.mcl`, a `metadata.yaml`, `-` for standard input, or code
    #[arg(value_name = "INPUT", num_args = 1..=2, required = true)]
    words: Vec<String>,

    /// Where modules from elsewhere are; ends in `/`. Also the variable SETPOINT_MODULE_PATH
    #[arg(long, value_name = "DIR")]
    module_path: Option<String>,

    /// Name of this host as the program sees it [default: the machine's]
    #[arg(long, value_name = "NAME")]
    hostname: Option<String>,

    #[command(flatten)]
    later: CompileLater,
}

impl ProgramArguments {
    /// The input. `lang` before it says what is the default anyway.
    pub(crate) fn input(&self) -> Result<&str, Failure> {
        match self.words.as_slice() {
            [word] if word == "lang" => Err(Failure::usage("`lang` needs a program behind it")),
            [input] => Ok(input),
            [frontend, input] if frontend == "lang" => Ok(input),
            [frontend, _] if frontend == "yaml" => {
                Err(Failure::usage("programs in YAML are not supported yet"))
            }
            [_, surplus] => Err(Failure::usage(format!("unexpected argument `{surplus}`"))),
            _ => Err(Failure::usage("a program is needed")),
        }
    }

    /// The words as they were given.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// How to compile.
    pub(crate) fn compile_options(
        &self,
        skip_types: bool,
        output: &Output,
    ) -> Result<CompileOptions, Failure> {
        self.later.check(output)?;
        let given = self.module_path.clone().or_else(|| environment("MODULE_PATH"));
        let Some(directory) = given else {
            return Ok(CompileOptions {
                modules_directory: None,
                skip_types,
            });
        };
        if !directory.ends_with('/') {
            return Err(Failure::usage(format!(
                "the module path `{directory}` must end in `/`"
            )));
        }
        let absolute = std::path::absolute(&directory).map_err(|error| {
            Failure::io(
                format_args!("find the working directory for `{directory}`"),
                &error,
            )
        })?;
        let mut text = absolute.to_string_lossy().into_owned();
        if !text.ends_with('/') {
            text.push('/');
        }
        Ok(CompileOptions {
            modules_directory: Some(text),
            skip_types,
        })
    }

    /// Whether the name of this host was given.
    pub(crate) fn has_hostname(&self) -> bool {
        self.hostname.is_some()
    }

    /// The name of this host.
    pub(crate) fn hostname(&self) -> Result<String, Failure> {
        let Some(name) = &self.hostname else {
            return Ok(system_hostname());
        };
        let is_valid = (1..=253).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            && name.bytes().any(|b| b.is_ascii_alphanumeric())
            && !name.starts_with(['.', '-']);
        if is_valid {
            return Ok(name.clone());
        }
        let rule =
            "1 to 253 letters, digits, dots, dashes and underscores, and neither a dot nor a dash in front";
        Err(Failure::usage(format!(
            "`{name}` is not a host name: it takes {rule}"
        )))
    }
}

/// Reads a number of seconds, with or without a fraction.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "it must be a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "it must be a number of seconds, and not negative".to_owned())
}

/// Reads a whole number of whatever size the flag can take.
pub(crate) fn parse_whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow => "it is too large",
            IntErrorKind::NegOverflow => "it is too small",
            IntErrorKind::Zero => "it must be 1 or more",
            _ => "it must be a whole number",
        };
        why.to_owned()
    })
}

/// A variable of the environment: with our prefix, or with the one that older programs' scripts set.
pub(crate) fn environment(name: &str) -> Option<String> {
    let read = |name: String| std::env::var(name).ok().filter(|value| !value.is_empty());
    read(format!("SETPOINT_{name}")).or_else(|| read(format!("MGMT_{name}")))
}
