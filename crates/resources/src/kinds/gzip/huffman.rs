//! Compression by the frequency of bytes alone, which repetitions do not help: fast, and the same speed for everything.
//!
//! The library that makes the other levels has no name for it; what it stands on does.

use std::io::{self, Write};

use flate2::Crc;
use miniz_oxide::deflate::core::{CompressionStrategy, CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::{MZFlush, MZStatus};

/// The beginning of a file without a name, a time and a system (RFC 1952); the byte before the last one says that it was made fast.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// Compresses what is written into it.
pub(super) struct HuffmanEncoder<W: Write> {
    writer: W,
    compressor: Box<CompressorOxide>,
    sum: Crc,
}

impl<W: Write> HuffmanEncoder<W> {
    pub(super) fn new(mut writer: W) -> io::Result<HuffmanEncoder<W>> {
        writer.write_all(&HEADER)?;
        // Without the header of zlib, which negative bits of the window say.
        let flags = create_comp_flags_from_zip_params(1, -15, CompressionStrategy::HuffmanOnly as i32);
        Ok(HuffmanEncoder {
            writer,
            compressor: Box::new(CompressorOxide::new(flags)),
            sum: Crc::new(),
        })
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.compress(&[], MZFlush::Finish)?;
        self.writer.write_all(&self.sum.sum().to_le_bytes())?;
        self.writer.write_all(&self.sum.amount().to_le_bytes())
    }

    fn compress(&mut self, mut input: &[u8], flush: MZFlush) -> io::Result<()> {
        let mut output = [0; 16 << 10];
        loop {
            let done = deflate(&mut self.compressor, input, &mut output, flush);
            self.writer.write_all(&output[..done.bytes_written])?;
            input = &input[done.bytes_consumed..];
            let is_over = match flush {
                MZFlush::Finish => done.status == Ok(MZStatus::StreamEnd),
                _ => input.is_empty(),
            };
            match done.status {
                _ if is_over => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(io::Error::other(format!("it cannot be compressed: {error:?}"))),
            }
        }
    }
}

impl<W: Write> Write for HuffmanEncoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sum.update(bytes);
        self.compress(bytes, MZFlush::None)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn what_is_compressed_is_read_back_and_repetitions_do_not_help() {
        let repeated = b"abcdefgh".repeat(100_000);
        for text in [&b""[..], b"a", b"hello, hello", &repeated] {
            let mut compressed = Vec::new();
            let mut encoder = HuffmanEncoder::new(&mut compressed).unwrap();
            for part in text.chunks(7777) {
                encoder.write_all(part).unwrap();
            }
            encoder.finish().unwrap();
            let mut back = Vec::new();
            GzDecoder::new(&compressed[..]).read_to_end(&mut back).unwrap();
            assert_eq!(back, text);
            // Eight signs that are equally frequent need three bits each.
            if text.len() == repeated.len() {
                let bits = compressed.len() * 8 / text.len();
                assert_eq!(bits, 3, "{} bytes", compressed.len());
            }
        }
    }
}
