//! A body that comes in chunks (RFC 9112, 7.1), taken apart as it comes.
//!
//! ```text
//! 5\r\nhello\r\n  6;ignored\r\n world\r\n  0\r\n  Trailer: ignored\r\n  \r\n
//! ```

use super::Refusal;

/// Bytes of a line with the size of a chunk, and of all lines after the last chunk. A size has
/// few digits; what follows it is ignored and need not be long.
const MAX_LINE: usize = 256;
const MAX_TRAILER: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the line with the size of a chunk.
    Size,
    /// In a chunk, of which so much is missing.
    Data(u64),
    /// After a chunk: its line ends.
    End,
    /// In the lines after the last chunk.
    Trailer,
    Done,
}

/// Takes chunks apart.
///
/// ```
/// use lssvm_serve::http::Chunks;
/// let (mut chunks, mut body) = (Chunks::new(100), Vec::new());
/// let bytes = b"5\r\nhello\r\n0\r\n\r\nGET";
/// assert_eq!(chunks.feed(&bytes[..6], &mut body)?, 6);
/// assert_eq!(chunks.feed(&bytes[6..], &mut body)?, bytes.len() - 6 - 3);
/// assert!(chunks.is_done());
/// assert_eq!(body, b"hello");
/// # Ok::<(), lssvm_serve::http::Refusal>(())
/// ```
#[derive(Debug)]
pub struct Chunks {
    state: State,
    line: Vec<u8>,
    trailer: usize,
    max_body: u64,
}

impl Chunks {
    /// For a body of at most so many bytes.
    pub fn new(max_body: u64) -> Self {
        Self {
            state: State::Size,
            line: Vec::new(),
            trailer: 0,
            max_body,
        }
    }

    /// Whether the body is complete.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes what has come, adds what belongs to the body to `body`, and says how many bytes
    /// were taken: all, unless the body ends before.
    ///
    /// # Errors
    /// A [`Refusal`], if these are no chunks or the body is too long.
    pub fn feed(&mut self, bytes: &[u8], body: &mut Vec<u8>) -> Result<usize, Refusal> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if let State::Data(missing) = self.state {
                let rest = &bytes[at..];
                let length = missing.min(rest.len() as u64);
                body.extend_from_slice(&rest[..length as usize]);
                at += length as usize;
                self.state = match missing - length {
                    0 => State::End,
                    missing => State::Data(missing),
                };
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if byte != b'\n' {
                self.line.push(byte);
                if self.line.len() > MAX_LINE {
                    return Err(wrong("a line beside its chunks is too long"));
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let Some(line) = line.strip_suffix(b"\r") else {
                return Err(wrong("its lines do not end with CR LF"));
            };
            self.end_of_line(line, body.len() as u64)?;
        }
        Ok(at)
    }

    fn end_of_line(&mut self, line: &[u8], so_far: u64) -> Result<(), Refusal> {
        self.state = match self.state {
            State::Size => match size(line)? {
                0 => State::Trailer,
                size if size > self.max_body.saturating_sub(so_far) => {
                    return Err(too_long(self.max_body));
                }
                size => State::Data(size),
            },
            State::End if line.is_empty() => State::Size,
            State::End => return Err(wrong("a chunk is longer than its size")),
            State::Trailer if line.is_empty() => State::Done,
            State::Trailer => {
                self.trailer += line.len();
                if self.trailer > MAX_TRAILER {
                    return Err(wrong("it has too many lines after the last chunk"));
                }
                State::Trailer
            }
            state @ (State::Data(_) | State::Done) => state,
        };
        Ok(())
    }
}

/// The size of a chunk, from its line.
fn size(line: &[u8]) -> Result<u64, Refusal> {
    let digits = line.split(|&b| b == b';').next().unwrap_or(&[]);
    let digits = digits.trim_ascii_end();
    let hexadecimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| hexadecimal);
    let size = text.and_then(|text| u64::from_str_radix(text, 16).ok());
    size.ok_or_else(|| wrong("a chunk has no size"))
}

fn wrong(what: &str) -> Refusal {
    Refusal::new(400, format!("the chunked body cannot be read: {what}"))
}

/// The answer to a body that is too long.
pub fn too_long(max_body: u64) -> Refusal {
    let message = format!(
        "the body has more than {max_body} bytes: send fewer rows at a time, or start the server \
         with a larger --max-body"
    );
    Refusal::new(413, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All at once.
    fn decode(bytes: &[u8], max: u64) -> Result<(Vec<u8>, usize, bool), u16> {
        let (mut chunks, mut body) = (Chunks::new(max), Vec::new());
        let taken = chunks.feed(bytes, &mut body).map_err(|r| r.status)?;
        Ok((body, taken, chunks.is_done()))
    }

    #[test]
    fn chunks_are_put_together() {
        let bytes = b"5\r\nhello\r\nA;name=\"x\"\r\n, chunks!!\r\n00\r\nSum: 1\r\n\r\n";
        let (body, taken, done) = decode(bytes, 15).unwrap();
        assert_eq!(
            (body.as_slice(), taken, done),
            (&b"hello, chunks!!"[..], bytes.len(), true)
        );
        assert_eq!(decode(bytes, 14), Err(413));
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for wrong in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            "5\n",
            "1\r\nab\r\n",
            "11111111111111111\r\n",
        ] {
            assert_eq!(decode(wrong.as_bytes(), 100), Err(400), "{wrong:?}");
        }
        assert_eq!(decode("ffffffffffffffff\r\n".as_bytes(), 100), Err(413));
        assert_eq!(decode(&[b'0'; MAX_LINE + 2], 100), Err(400));
        let trailer = format!("0\r\n{}", "A: b\r\n".repeat(MAX_TRAILER));
        assert_eq!(decode(trailer.as_bytes(), 100), Err(400));
    }

    proptest! {
        /// However the bytes are cut, the body is the same.
        #[test]
        fn pieces_give_the_same(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..6),
            cut in 1usize..9,
        ) {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend(format!("{:x}\r\n", part.len()).bytes());
                bytes.extend(part);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            let (mut chunks, mut body) = (Chunks::new(1000), Vec::new());
            for piece in bytes.chunks(cut) {
                prop_assert!(!chunks.is_done());
                prop_assert_eq!(chunks.feed(piece, &mut body).unwrap(), piece.len());
            }
            prop_assert!(chunks.is_done());
            prop_assert_eq!(body, parts.concat());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok((body, taken, _)) = decode(&bytes, 50) {
                prop_assert!(body.len() <= 50 && taken <= bytes.len());
            }
        }
    }
}
