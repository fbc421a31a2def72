//! Reads zstd frames, one after the other, as they come.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{BufRead, Error, ErrorKind, Read, Result};

/// The contents of frames.
pub(super) struct Frames<R> {
    bytes: R,
    decoder: FrameDecoder,
    within: bool,
}

impl<R: BufRead> Frames<R> {
    /// Reads the frames in `bytes`.
    pub(super) fn new(bytes: R) -> Frames<R> {
        Frames { bytes, decoder: FrameDecoder::new(), within: false }
    }

    /// Begins the next frame, and says whether there is one.
    fn begin(&mut self) -> Result<bool> {
        while !self.bytes.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.bytes) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    std::io::copy(&mut (&mut self.bytes).take(u64::from(length)), &mut std::io::sink())?;
                }
                Err(error) => return Err(damaged(error)),
            }
        }
        Ok(false)
    }

    fn check(&self) -> Result<()> {
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(said), Some(found)) if said != found => {
                Err(Error::new(ErrorKind::InvalidData, "the checksum of a frame does not fit"))
            }
            _ => Ok(()),
        }
    }
}

fn damaged(error: FrameDecoderError) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while self.within || self.begin()? {
            self.within = true;
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.decoder.is_finished() {
                self.check()?;
                self.within = false;
                continue;
            }
            self.decoder.decode_blocks(&mut self.bytes, BlockDecodingStrategy::UptoBlocks(1)).map_err(damaged)?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    fn frame(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    fn inflated(bytes: &[u8]) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        Frames::new(bytes).read_to_end(&mut found).map(|_| found)
    }

    #[test]
    fn frames_follow_each_other_and_some_are_passed_over() {
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let bytes = [&frame(b"one ")[..], &skipped, &frame(b"two")].concat();
        assert_eq!(inflated(&bytes).expect("sound"), b"one two");
    }

    #[test]
    fn frames_that_are_cut_short_or_changed_are_refused() {
        let text: Vec<u8> =
            (0..20_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let whole = frame(&text);
        assert_eq!(inflated(&whole).expect("sound"), text);
        assert!(inflated(&whole[..whole.len() - 5]).is_err());
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        assert!(inflated(&changed).is_err());
        assert!(inflated(&[&whole[..], b"more"].concat()).is_err());
    }
}
