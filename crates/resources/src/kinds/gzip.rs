//! The `gzip` kind: a file that is another one, or a text, compressed.

mod huffman;

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use setpoint_engine::{
    Apply, Attempting, DriftValue, Failure, IfSet, Resource, Text, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry};

use crate::derived_file::{self, Found, Origin};
use crate::enclosing;
use huffman::HuffmanEncoder;

/// A file that holds another one, or a text, compressed with gzip.
///
/// Neither a name nor a time is in it, so the same input always makes the same file.
///
/// ```mcl
/// gzip "/srv/www/data.json.gz" {
///     input => "/srv/www/data.json",
///     level => $const.res.gzip.level.best_compression,
/// }
/// ```
///
/// ```mcl
/// gzip "/srv/www/index.html.gz" {
///     content => "<h1>hello</h1>\n",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(
    kind = "gzip",
    autoedge,
    constants(level(
        no_compression = 0,
        best_speed = 1,
        best_compression = 9,
        default_compression = -1,
        huffman_only = -2
    ))
)]
pub(crate) struct Gzip {
    /// The compressed file. Unset: the resource's name.
    path: IfSet<AbsolutePath>,
    /// The file that is compressed. Unset: `content` is.
    input: IfSet<AbsolutePath>,
    /// The text that is compressed, if `input` is not set.
    content: Text,
    /// From 0, which only wraps, and 1, which is fast, to 9, which makes it small; -1 is 6. -2 looks only at how frequent bytes are, not at repetitions.
    #[param(default = -1)]
    level: i64,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Gzip {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match self.path() {
            Err(message) => invalid.push(Invalid::parameter("path", message)),
            Ok(path) if path.names_directory() => {
                invalid.push(Invalid::parameter("path", "must be a file: it ends in a slash"));
            }
            Ok(path)
                if self
                    .input
                    .as_ref()
                    .is_some_and(|input| input.cleaned() == path.cleaned()) =>
            {
                invalid.push(Invalid::parameter("input", "is the compressed file itself"));
            }
            Ok(_) => {}
        }
        if self.input.as_ref().is_some_and(AbsolutePath::names_directory) {
            let message = "must be a file: it ends in a slash";
            invalid.push(
                Invalid::parameter("input", message).help("the kind `tar` makes one file of a directory"),
            );
        }
        if !(-2..=9).contains(&self.level) {
            invalid.push(Invalid::parameter("level", "must be from -2 to 9"));
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let input = Wanted::first_of_each(self.input.iter().map(enclosing::file));
        let path = self.path().ok();
        let directory = path.iter().map(|path| enclosing::wanted(&enclosing::file(path)));
        std::iter::once(input).chain(directory).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let path = self.path().ok();
        path.into_iter()
            .chain(self.input.0.clone())
            .map(Watch::path)
            .collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .path()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let method = match self.level {
            -1 => Method::Level(Compression::default()),
            -2 => Method::HuffmanOnly,
            level => Method::Level(Compression::new(u32::try_from(level).unwrap_or(6))),
        };
        let mut origin = Origin::of(&self.level.to_le_bytes());
        let input = match &*self.input {
            Some(input) => {
                let attempted = "read what is compressed";
                let input = &enclosing::reads(apply, input);
                let entry = Entry::at(input).and_then(|entry| entry.follow());
                let open = entry
                    .and_then(|entry| entry.open())
                    .attempting(attempted, input)?;
                origin.add_file(open.stat());
                Input::File(input.clone())
            }
            None => {
                origin.add(self.content.as_bytes());
                Input::Text(self.content.clone())
            }
        };
        let again = input.clone();
        let found = derived_file::compare(apply, &path, &origin, |writer| input.compress(method, writer))?;
        let is = match found {
            Found::Right => return Ok(()),
            Found::Nothing => DriftValue::Absent,
            Found::Other => DriftValue::from("other contents"),
        };
        let want = match &*self.input {
            Some(input) => format!("{input}, compressed"),
            None => format!("{} bytes, compressed", self.content.as_bytes().len()),
        };
        if apply.existence("output", is, want) {
            derived_file::make(apply, &path, &origin, found, move |writer| {
                again.compress(method, writer)
            })?;
        }
        Ok(())
    }
}

impl Gzip {
    fn path(&self) -> Result<AbsolutePath, String> {
        match &*self.path {
            Some(path) => Ok(path.clone()),
            None => AbsolutePath::new(&self.name).map_err(|error| format!("{error}: `{}`", self.name)),
        }
    }
}

/// How it is compressed.
#[derive(Clone, Copy)]
enum Method {
    Level(Compression),
    HuffmanOnly,
}

/// What is compressed.
#[derive(Clone)]
enum Input {
    File(AbsolutePath),
    Text(Text),
}

impl Input {
    fn compress(&self, method: Method, writer: &mut dyn Write) -> io::Result<()> {
        match method {
            Method::Level(level) => {
                let mut encoder = GzBuilder::new().mtime(0).write(writer, level);
                self.copy_into(&mut encoder)?;
                encoder.finish().map(drop)
            }
            Method::HuffmanOnly => {
                let mut encoder = HuffmanEncoder::new(writer)?;
                self.copy_into(&mut encoder)?;
                encoder.finish()
            }
        }
    }

    fn copy_into(&self, encoder: &mut dyn Write) -> io::Result<()> {
        match self {
            Input::Text(text) => encoder.write_all(text.as_bytes()),
            Input::File(path) => {
                let open = Entry::at(path).and_then(|entry| entry.follow()?.open());
                let mut open = open.map_err(io::Error::other)?;
                io::copy(&mut open, encoder).map(drop)
            }
        }
    }
}
