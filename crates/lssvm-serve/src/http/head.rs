//! The head of a request: bytes in, what they say or a refusal out.

use super::Refusal;

/// Bytes of a head, and of the path in it, at most.
pub const MAX_HEAD: usize = 16 * 1024;
const MAX_TARGET: usize = 4 * 1024;

/// Headers at most: browsers send about 20.
const MAX_HEADERS: usize = 64;

/// How the length of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// In chunks, each with its length.
    Chunked,
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// GET and the like.
    pub method: String,
    /// The path, decoded, without what follows a question mark.
    pub path: String,
    /// What the client calls this server.
    pub host: Option<String>,
    /// How long the body is.
    pub framing: Framing,
    /// Whether another request may follow on this connection.
    pub keep_alive: bool,
    /// Whether the client waits to be told to send its body.
    pub expects_continue: bool,
    /// Length of the JSON part of a body with binary tensors.
    pub json_length: Option<u64>,
}

/// Reads the head at the start of `bytes`. None: there is more to come. Else the head, and how
/// many bytes it has.
///
/// # Errors
/// A [`Refusal`] with the status to answer, if this is no head or one that is too long.
///
/// ```
/// use lssvm_serve::http::{Framing, parse_head};
/// let bytes = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\nand more";
/// let (head, length) = parse_head(bytes)?.expect("it is whole");
/// assert_eq!((head.path.as_str(), head.framing), ("/v2/health/live", Framing::None));
/// assert_eq!(&bytes[length..], b"and more");
/// assert_eq!(parse_head(&bytes[..20])?, None);
/// assert_eq!(parse_head(b"\x16\x03\x01 hello").unwrap_err().status, 400);
/// # Ok::<(), lssvm_serve::http::Refusal>(())
/// ```
pub fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Refusal> {
    let mut space = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut space);
    let seen = &bytes[..bytes.len().min(MAX_HEAD)];
    let status = parsed.parse(seen).map_err(|error| match error {
        httparse::Error::TooManyHeaders => too_large(format!("more than {MAX_HEADERS} headers")),
        httparse::Error::Version => Refusal::new(505, "this server speaks HTTP/1.1 and HTTP/1.0"),
        error => Refusal::new(400, format!("this is no HTTP request: {error}")),
    })?;
    let length = match status {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial if bytes.len() < MAX_HEAD => return Ok(None),
        httparse::Status::Partial => {
            return Err(too_large(format!("headers of more than {MAX_HEAD} bytes")));
        }
    };
    let (method, target) = (parsed.method.unwrap_or(""), parsed.path.unwrap_or(""));
    let one_dot_one = parsed.version == Some(1);
    if target.len() > MAX_TARGET {
        let message = format!("a path of more than {MAX_TARGET} bytes");
        return Err(Refusal::new(414, message));
    }
    let mut fields = Fields::default();
    for header in parsed.headers.iter() {
        fields.take(header)?;
    }
    if one_dot_one && fields.host.is_none() {
        return Err(Refusal::new(
            400,
            "a request of HTTP/1.1 needs a Host header",
        ));
    }
    let framing = fields.framing(one_dot_one)?;
    let head = Head {
        method: method.to_string(),
        path: decode_path(target)?,
        host: fields.host,
        framing,
        keep_alive: !fields.close && (one_dot_one || fields.keep),
        expects_continue: fields.expects && one_dot_one && framing != Framing::None,
        json_length: fields.json_length,
    };
    Ok(Some((head, length)))
}

fn too_large(what: String) -> Refusal {
    Refusal::new(431, format!("{what}; send fewer"))
}

/// The headers that matter here.
#[derive(Debug, Default)]
struct Fields {
    host: Option<String>,
    length: Option<u64>,
    codings: Vec<String>,
    close: bool,
    keep: bool,
    expects: bool,
    json_length: Option<u64>,
}

impl Fields {
    fn take(&mut self, header: &httparse::Header<'_>) -> Result<(), Refusal> {
        let value = String::from_utf8_lossy(header.value);
        let value = value.trim_matches([' ', '\t']);
        let words = || {
            value
                .split(',')
                .map(|word| word.trim().to_ascii_lowercase())
        };
        match header.name.to_ascii_lowercase().as_str() {
            "host" if self.host.is_some() => {
                return Err(Refusal::new(400, "two Host headers; send one"));
            }
            "host" => self.host = Some(value.to_string()),
            "content-length" => self.length = Some(once("Content-Length", self.length, value)?),
            "inference-header-content-length" => {
                let name = "Inference-Header-Content-Length";
                self.json_length = Some(once(name, self.json_length, value)?);
            }
            "transfer-encoding" => self.codings.extend(words()),
            "connection" => {
                self.close |= words().any(|word| word == "close");
                self.keep |= words().any(|word| word == "keep-alive");
            }
            "content-encoding" if !value.eq_ignore_ascii_case("identity") => {
                let message = format!("Content-Encoding {value} is not understood; send it plain");
                return Err(Refusal::new(501, message));
            }
            "expect" if value.eq_ignore_ascii_case("100-continue") => self.expects = true,
            "expect" => {
                let message = format!("Expect: {value} cannot be met; leave it out");
                return Err(Refusal::new(417, message));
            }
            _ => {}
        }
        Ok(())
    }

    /// RFC 9112, 6.3: who sends two lengths wants somebody to take the wrong one.
    fn framing(&self, one_dot_one: bool) -> Result<Framing, Refusal> {
        match (self.codings.as_slice(), self.length) {
            ([], None) => Ok(Framing::None),
            ([], Some(0)) => Ok(Framing::None),
            ([], Some(length)) => Ok(Framing::Length(length)),
            (_, Some(_)) => Err(Refusal::new(
                400,
                "both Content-Length and Transfer-Encoding; send one of them",
            )),
            _ if !one_dot_one => Err(Refusal::new(
                400,
                "HTTP/1.0 has no Transfer-Encoding; send Content-Length",
            )),
            ([coding], None) if coding == "chunked" => Ok(Framing::Chunked),
            (codings, None) => {
                let message = format!(
                    "Transfer-Encoding {} is not understood; send chunked or Content-Length",
                    codings.join(", ")
                );
                Err(Refusal::new(501, message))
            }
        }
    }
}

/// A length, which may be repeated but not contradicted.
fn once(name: &str, before: Option<u64>, value: &str) -> Result<u64, Refusal> {
    // Digits only: `parse` alone would take a plus sign.
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let length = value.parse().ok().filter(|_| digits);
    match (before, length) {
        (_, None) => Err(Refusal::new(400, format!("{name} '{value}' is no length"))),
        (Some(before), Some(length)) if before != length => {
            let message = format!("{name} is both {before} and {length}");
            Err(Refusal::new(400, message))
        }
        (_, Some(length)) => Ok(length),
    }
}

/// The path of a target without its query, `%20` and the like decoded.
fn decode_path(target: &str) -> Result<String, Refusal> {
    let wrong = || Refusal::new(400, format!("the path {target:?} cannot be decoded"));
    // What a client sends through a proxy: http://host/path
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let path = path.split(['?', '#']).next().unwrap_or("");
    let mut bytes = path.bytes();
    let mut out = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || {
            let byte = bytes.next().ok_or_else(wrong)?;
            (byte as char).to_digit(16).ok_or_else(wrong)
        };
        let value = 16 * digit()? + digit()?;
        out.push(value as u8);
    }
    String::from_utf8(out).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str) -> Result<Head, u16> {
        let whole = parse_head(text.as_bytes()).map_err(|refusal| refusal.status)?;
        let (head, length) = whole.expect("a whole head");
        assert_eq!(length, text.len());
        Ok(head)
    }

    /// A request with these header lines.
    fn with(lines: &str) -> Result<Head, u16> {
        head(&format!("POST /x HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
    }

    #[test]
    fn lengths_are_taken_or_refused() {
        assert_eq!(with("").unwrap().framing, Framing::None);
        let length = |lines: &str| with(lines).map(|head| head.framing);
        assert_eq!(length("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
        assert_eq!(length("content-length:12 \r\n"), Ok(Framing::Length(12)));
        let twice = "Content-Length: 12\r\nContent-Length: 12\r\n";
        assert_eq!(length(twice), Ok(Framing::Length(12)));
        assert_eq!(
            length("Transfer-Encoding: Chunked\r\n"),
            Ok(Framing::Chunked)
        );
        for (lines, status) in [
            ("Content-Length: 12\r\nContent-Length: 13\r\n", 400),
            ("Content-Length: +12\r\n", 400),
            ("Content-Length: -1\r\n", 400),
            ("Content-Length: 12, 12\r\n", 400),
            ("Content-Length:\r\n", 400),
            ("Content-Length: 99999999999999999999\r\n", 400),
            ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
            ("Transfer-Encoding: gzip\r\n", 501),
            ("Transfer-Encoding: gzip, chunked\r\n", 501),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                501,
            ),
            ("Content-Encoding: gzip\r\n", 501),
            ("Expect: a-miracle\r\n", 417),
            ("Host: b\r\n", 400),
            ("Host : b\r\n", 400),
            ("A: b\r\n c\r\n", 400),
        ] {
            assert_eq!(length(lines), Err(status), "{lines:?}");
        }
    }

    #[test]
    fn a_connection_is_kept_as_asked() {
        assert!(with("").unwrap().keep_alive);
        assert!(!with("Connection: Close\r\n").unwrap().keep_alive);
        assert!(!with("Connection: foo, close\r\n").unwrap().keep_alive);
        assert!(!head("GET / HTTP/1.0\r\n\r\n").unwrap().keep_alive);
        assert!(
            head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                .unwrap()
                .keep_alive
        );
        let expects = "Expect: 100-Continue\r\nContent-Length: 1\r\n";
        assert!(with(expects).unwrap().expects_continue);
        assert!(!with("Expect: 100-continue\r\n").unwrap().expects_continue);
    }

    #[test]
    fn paths_are_decoded() {
        let path = |target: &str| head(&format!("GET {target} HTTP/1.0\r\n\r\n")).map(|h| h.path);
        assert_eq!(path("/a%20b/%C3%A4?q=%zz").unwrap(), "/a b/ä");
        assert_eq!(path("http://host:1/a").unwrap(), "/a");
        assert_eq!(path("http://host").unwrap(), "/");
        for wrong in ["/%", "/%4", "/%zz", "/%ff"] {
            assert_eq!(path(wrong), Err(400), "{wrong}");
        }
    }

    #[test]
    fn heads_that_are_too_large() {
        let long = format!(
            "GET /{} HTTP/1.1\r\nHost: a\r\n\r\n",
            "a".repeat(MAX_TARGET)
        );
        assert_eq!(head(&long), Err(414));
        assert_eq!(with(&"A: b\r\n".repeat(MAX_HEADERS)), Err(431));
        assert_eq!(with(&format!("A: {}\r\n", "b".repeat(MAX_HEAD))), Err(431));
        let endless = vec![b'A'; MAX_HEAD];
        assert_eq!(parse_head(&endless[1..]).unwrap(), None);
        assert!(parse_head(&endless).is_err());
        assert_eq!(head("GET / HTTP/2.0\r\n\r\n"), Err(505));
        assert_eq!(head("GET / HTTP/1.1\r\n\r\n"), Err(400));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some((_, length))) = parse_head(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }

        #[test]
        fn a_damaged_head_is_read_or_refused(at in 0usize..80, byte in any::<u8>()) {
            let mut bytes = b"POST /v2/models/m/infer?x=1 HTTP/1.1\r\nHost: a\r\n\
                              Content-Length: 10\r\n\r\n".to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(Some((_, length))) = parse_head(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
