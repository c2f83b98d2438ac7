//! What a command wrote, in bounded memory.

use std::collections::VecDeque;
use std::fmt;

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// What a command wrote: each stream, and both with their pieces in the order in which they arrived.
///
/// Of each of the three only so much is kept. Of more than that the beginning and the end are there, with a line between them that
/// says how much was left out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Output {
    stdout: Kept,
    stderr: Kept,
    combined: Kept,
}

impl Output {
    pub(super) fn keeping(most: usize) -> Self {
        let kept = Kept {
            most,
            ..Kept::default()
        };
        Self {
            stdout: kept.clone(),
            stderr: kept.clone(),
            combined: kept,
        }
    }

    /// Both streams together.
    pub fn combined(&self) -> Vec<u8> {
        self.combined.bytes()
    }

    /// Standard output.
    pub fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes()
    }

    /// Standard error.
    pub fn stderr(&self) -> Vec<u8> {
        self.stderr.bytes()
    }

    /// How many bytes it wrote, and how many of them are not kept.
    pub fn written_and_left_out(&self) -> (u64, u64) {
        let left_out = self.stdout.left_out + self.stderr.left_out;
        (self.stdout.written() + self.stderr.written(), left_out)
    }

    /// Everything as text, with a mark in the place of what is none, and without the last line's end. For messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.combined())
            .trim_end_matches('\n')
            .to_owned()
    }

    pub(super) fn add(&mut self, stream: Stream, bytes: &[u8]) {
        self.combined.add(bytes);
        match stream {
            Stream::Stdout => self.stdout.add(bytes),
            Stream::Stderr => self.stderr.add(bytes),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a command prints may be a secret.
        write!(formatter, "Output({} bytes)", self.combined.written())
    }
}

/// The beginning and the end of a stream.
#[derive(Clone, Default, PartialEq, Eq)]
struct Kept {
    most: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How many bytes were between them.
    left_out: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let room = (self.most / 2).saturating_sub(self.head.len());
        let (head, tail) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        let most = self.most - self.most / 2;
        // Of a piece that is longer than the whole tail only its end is looked at.
        let (skipped, tail) = tail.split_at(tail.len().saturating_sub(most));
        let surplus = (self.tail.len() + tail.len()).saturating_sub(most);
        self.tail.drain(..surplus);
        self.tail.extend(tail);
        self.left_out += (skipped.len() + surplus) as u64;
    }

    fn written(&self) -> u64 {
        self.left_out + (self.head.len() + self.tail.len()) as u64
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        if self.left_out > 0 {
            let mark = format!("\n[{} bytes left out]\n", self.left_out);
            bytes.extend_from_slice(mark.as_bytes());
        }
        bytes.extend(&self.tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_and_of_more_the_beginning_and_the_end() {
        let mut all = Output::keeping(10);
        all.add(Stream::Stdout, b"01234");
        all.add(Stream::Stderr, b"e");
        all.add(Stream::Stdout, b"56789");
        assert_eq!(all.stdout(), b"0123456789");
        assert_eq!(
            (all.stderr(), all.written_and_left_out()),
            (b"e".to_vec(), (11, 0))
        );
        assert_eq!(all.combined(), b"01234\n[1 bytes left out]\n56789");
        all.add(Stream::Stdout, b"ab");
        assert_eq!(all.stdout(), b"01234\n[2 bytes left out]\n789ab");
        all.add(Stream::Stdout, b"ABCDEFGHIJ");
        assert_eq!(all.stdout(), b"01234\n[12 bytes left out]\nFGHIJ");
        assert_eq!(all.written_and_left_out(), (23, 12));
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let text: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let mut whole = Output::keeping(101);
        whole.add(Stream::Stdout, &text);
        for size in [1, 2, 3, 49, 50, 51, 52, 100, 101, 102, 999] {
            let mut pieces = Output::keeping(101);
            for piece in text.chunks(size) {
                pieces.add(Stream::Stdout, piece);
            }
            assert_eq!(pieces.stdout(), whole.stdout(), "{size}");
        }
    }
}
