//! The numbers of a tensor, from their text straight into a vector.
//!
//! A tree of JSON values would take 16 times the memory of the numbers and most of the time of a
//! small request. The text is known to be JSON; here it only has to be numbers, in arrays that
//! are as long as the shape says.

use lssvm::linalg::{Precision, Scalar};

use crate::http::Refusal;

/// The type of the values of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datatype {
    /// `FP32` and `FP64`.
    Float,
    /// Whole numbers in this range.
    Whole(i128, i128),
}

impl Datatype {
    /// By its name in the protocol.
    pub fn named(name: &str) -> Option<Self> {
        let signed = |bits: u32| Datatype::Whole(-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
        let unsigned = |bits: u32| Datatype::Whole(0, (1 << bits) - 1);
        Some(match name {
            "FP32" | "FP64" => Datatype::Float,
            "INT8" => signed(8),
            "INT16" => signed(16),
            "INT32" => signed(32),
            "INT64" => signed(64),
            "UINT8" => unsigned(8),
            "UINT16" => unsigned(16),
            "UINT32" => unsigned(32),
            "UINT64" => unsigned(64),
            _ => return None,
        })
    }
}

/// Dimensions of a tensor at most: images have four.
pub const MAX_DIMENSIONS: usize = 4;

/// Reads a JSON array of numbers: flat, or nested as `shape` has it.
///
/// `text` must be JSON; what it holds may be anything. The values are those of
/// `str::parse`, to the last bit.
///
/// # Errors
/// A [`Refusal`] that names the value, if there is one that is no number of this type, or too
/// few or too many of them.
///
/// ```
/// use lssvm_serve::protocol::{Datatype, parse_numbers};
/// let read = |text| parse_numbers::<f32>(text, &[2, 2], Datatype::Float);
/// assert_eq!(read("[1, 2.5, -3e2, 4]")?, [1.0, 2.5, -300.0, 4.0]);
/// assert_eq!(read("[[1, 2], [3, 4]]")?, [1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(read("[[1, 2, 3], [4]]").unwrap_err().status, 400);
/// # Ok::<(), lssvm_serve::http::Refusal>(())
/// ```
pub fn parse_numbers<T: Scalar>(
    text: &str,
    shape: &[usize],
    datatype: Datatype,
) -> Result<Vec<T>, Refusal> {
    let bytes = text.as_bytes();
    let Some(&b'[') = bytes.first() else {
        return Err(wrong("data must be an array of numbers".into()));
    };
    let product = shape
        .iter()
        .try_fold(1usize, |all, &size| all.checked_mul(size));
    let Some(flat) = product.filter(|_| (1..=MAX_DIMENSIONS).contains(&shape.len())) else {
        return Err(wrong(format!("a tensor of shape {shape:?} is too large")));
    };
    let nested = bytes[1..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
    let flat = [flat];
    let mut scan = Scan {
        sizes: if nested { shape } else { &flat },
        counts: [0; MAX_DIMENSIONS],
        depth: 0,
        datatype,
        // A promised size takes no memory: a number has a digit and a comma.
        values: Vec::with_capacity(flat[0].min(text.len() / 2 + 1)),
    };
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'[' => scan.open()?,
            b']' => scan.close()?,
            b',' | b' ' | b'\t' | b'\n' | b'\r' => {}
            b'-' | b'0'..=b'9' => {
                at += scan.number(&text[at..])?;
                continue;
            }
            byte => return Err(scan.no_number(byte)),
        }
        at += 1;
    }
    // Of what is JSON this is so already.
    match scan.depth == 0 && scan.values.len() == flat[0] {
        true => Ok(scan.values),
        false => Err(scan.misshapen("the text ends")),
    }
}

struct Scan<'a, T> {
    sizes: &'a [usize],
    /// Elements seen so far of the arrays that are open.
    counts: [usize; MAX_DIMENSIONS],
    depth: usize,
    datatype: Datatype,
    values: Vec<T>,
}

impl<T: Scalar> Scan<'_, T> {
    fn open(&mut self) -> Result<(), Refusal> {
        if self.depth == self.sizes.len() {
            return Err(self.misshapen("an array is nested deeper than the shape says"));
        }
        self.count()?;
        self.counts[self.depth] = 0;
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Refusal> {
        // More ends than beginnings are no JSON.
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(self.misshapen("an array ends that did not begin"));
        };
        if self.counts[depth] != self.sizes[depth] {
            let (count, size) = (self.counts[depth], self.sizes[depth]);
            return Err(self.misshapen(&format!("an array has {count} elements instead of {size}")));
        }
        self.depth = depth;
        Ok(())
    }

    /// One more element of the array that is open.
    fn count(&mut self) -> Result<(), Refusal> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Ok(());
        };
        self.counts[depth] += 1;
        if self.counts[depth] > self.sizes[depth] {
            let size = self.sizes[depth];
            return Err(self.misshapen(&format!("an array has more than {size} elements")));
        }
        Ok(())
    }

    /// Takes the number at the start of `text`, and says how long it is.
    #[inline]
    fn number(&mut self, text: &str) -> Result<usize, Refusal> {
        if self.depth != self.sizes.len() {
            return Err(self.misshapen("a number stands where an array should"));
        }
        self.count()?;
        let (value, length) = match read_number::<T>(text.as_bytes()) {
            Read::Exact(value, length) => (Some(value), length),
            Read::Long(length) => (text[..length].parse().ok(), length),
        };
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return Err(self.bad(
                &text[..length],
                "is too large for the number type of the model",
            ));
        };
        if let Datatype::Whole(least, greatest) = self.datatype {
            let whole = text[..length].parse::<i128>().ok();
            if !whole.is_some_and(|whole| (least..=greatest).contains(&whole)) {
                return Err(self.bad(&text[..length], "is not of the datatype of its tensor"));
            }
        }
        self.values.push(value);
        Ok(length)
    }

    /// Why a value is refused; the next one is meant.
    fn bad(&self, token: &str, why: &str) -> Refusal {
        let place = self.values.len() + 1;
        let short: String = token.chars().take(40).collect();
        wrong(format!("value {place} of data, {short}, {why}"))
    }

    fn no_number(&self, byte: u8) -> Refusal {
        let kind = match byte {
            b'"' => "a string",
            b'{' => "an object",
            b'n' => "null; fill in or drop rows with missing values",
            _ => "no number",
        };
        wrong(format!("value {} of data is {kind}", self.values.len() + 1))
    }

    fn misshapen(&self, what: &str) -> Refusal {
        let place = self.values.len();
        wrong(format!(
            "data do not fit the shape: after {place} values {what}; give all values in one array, \
             or arrays in arrays as the shape has it"
        ))
    }
}

enum Read<T> {
    /// A value and its length.
    Exact(T, usize),
    /// A number of this length that needs more care.
    Long(usize),
}

/// Powers of ten that both number types hold exactly.
const TENS: [f64; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// Reads a number whose digits and power of ten are exact in `T`: then one division gives the
/// nearest value. Pixels and most measured numbers are of this kind.
#[inline]
fn read_number<T: Scalar>(bytes: &[u8]) -> Read<T> {
    let exact: u64 = match T::PRECISION {
        Precision::F32 => 1 << 24,
        Precision::F64 => 1 << 53,
    };
    let negative = bytes[0] == b'-';
    let (mut at, mut digits, mut decimals) = (usize::from(negative), 0u64, 0usize);
    let mut simple = true;
    let mut point = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' => {
                digits = digits
                    .saturating_mul(10)
                    .saturating_add(u64::from(byte - b'0'));
                decimals += usize::from(point);
            }
            b'.' => point = true,
            b'e' | b'E' | b'+' | b'-' => simple = false,
            _ => break,
        }
        at += 1;
    }
    if !simple || digits > exact || decimals >= TENS.len() {
        return Read::Long(at);
    }
    let value = T::from_f64(digits as f64) / T::from_f64(TENS[decimals]);
    Read::Exact(if negative { -value } else { value }, at)
}

fn wrong(message: String) -> Refusal {
    Refusal::new(400, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, shape: &[usize]) -> Result<Vec<f64>, String> {
        parse_numbers(text, shape, Datatype::Float).map_err(|refusal| refusal.message)
    }

    #[test]
    fn shapes_are_checked() {
        assert_eq!(read("[]", &[0, 3]).unwrap(), [0.0; 0]);
        assert_eq!(
            read("[[[1],[2]],[[3],[4]]]", &[2, 2, 1]).unwrap(),
            [1.0, 2.0, 3.0, 4.0]
        );
        for (text, shape) in [
            ("1", &[1, 1][..]),
            ("\"a\"", &[1, 1]),
            ("[1]", &[1, 2]),
            ("[1,2,3]", &[1, 2]),
            ("[[1,2],3]", &[2, 2]),
            ("[1,[2]]", &[2, 1]),
            ("[[1],[2,3]]", &[2, 2]),
            ("[[1,2]]", &[2, 2]),
            ("[[[1]]]", &[1, 1]),
            ("[1,null]", &[2]),
            ("[1,true]", &[2]),
            ("[1,\"2\"]", &[2]),
            ("[1,{}]", &[2]),
            ("[1e400]", &[1]),
            ("[]", &[]),
            ("[1]", &[usize::MAX, 2]),
            ("[1]", &[1, 1, 1, 1, 1]),
        ] {
            assert!(read(text, shape).is_err(), "{text} {shape:?}");
        }
        let message = read("[1, 2, null]", &[3]).unwrap_err();
        assert!(message.contains("value 3 of data is null"), "{message}");
    }

    #[test]
    fn whole_numbers_stay_in_their_range() {
        let read = |text: &str, name: &str| {
            let datatype = Datatype::named(name).unwrap();
            parse_numbers::<f32>(text, &[1], datatype).map_err(|refusal| refusal.status)
        };
        assert_eq!(read("[255]", "UINT8"), Ok(vec![255.0]));
        assert_eq!(read("[-128]", "INT8"), Ok(vec![-128.0]));
        assert_eq!(
            read("[18446744073709551615]", "UINT64"),
            Ok(vec![u64::MAX as f32])
        );
        for (text, name) in [
            ("[256]", "UINT8"),
            ("[-1]", "UINT8"),
            ("[1.5]", "UINT8"),
            ("[1e2]", "INT64"),
            ("[128]", "INT8"),
            ("[9223372036854775808]", "INT64"),
            ("[1e39]", "FP32"),
        ] {
            assert_eq!(read(text, name), Err(400), "{text} {name}");
        }
        assert_eq!(Datatype::named("BYTES"), None);
    }

    fn same_as_parse<T: Scalar>(text: &str) {
        let expected: T = text.parse().ok().unwrap();
        let list = format!("[{text}]");
        match parse_numbers::<T>(&list, &[1], Datatype::Float) {
            Ok(read) => assert_eq!(bits(read[0]), bits(expected), "{text}"),
            Err(_) => assert!(!expected.is_finite(), "{text}"),
        }
    }

    /// Told apart: 0 and -0 too.
    fn bits<T: Scalar>(value: T) -> u64 {
        value.to_f64().to_bits()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn numbers_are_those_of_the_library(
            text in "-?(0|[1-9][0-9]{0,20})([.][0-9]{1,14})?([eE][+-]?[0-9]{1,3})?"
        ) {
            same_as_parse::<f32>(&text);
            same_as_parse::<f64>(&text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]0-9,.eE+\\-nul \"{}a]{0,60}") {
            // Also what is no JSON must do no harm.
            let _ = parse_numbers::<f32>(&text, &[2, 2], Datatype::Float);
            let _ = parse_numbers::<f64>(&format!("[{text}"), &[3], Datatype::named("INT8").unwrap());
        }
    }
}
