//! What separates the columns of a table, and whether its first line names
//! them.

use std::convert::Infallible;

use super::{WHITESPACE, clean, records, text};

/// Lines that are looked at.
pub(in crate::data) const SAMPLE: usize = 100;

/// Fields that stand for a value that is missing: in the first line they are
/// no sign of a header.
const MISSING: [&[u8]; 6] = [b"", b"?", b"-", b"na", b"n/a", b"null"];

/// What separates the columns.
///
/// A tab, semicolon or bar that occurs equally often in every line separates;
/// they come before the comma, which may be a decimal comma in such a table.
pub(super) fn delimiter(text: &[u8]) -> u8 {
    let lines: Vec<&[u8]> = text::lines(text)
        .take(SAMPLE)
        .map(|(_, line)| line.trim_ascii())
        .collect();
    let counts = |delimiter: u8| lines.iter().map(move |line| count(line, delimiter));
    let first = |delimiter| counts(delimiter).next().unwrap_or(0);
    let even = |&delimiter: &u8| {
        let expected = first(delimiter);
        expected > 0 && counts(delimiter).all(|count| count == expected)
    };
    // If none is even, the commonest in the first line, so that the message
    // names the line that differs; not a tab, which may be one of many spaces.
    let uneven = [b';', b'|', b',']
        .into_iter()
        .filter(|&delimiter| first(delimiter) > 0);
    [b'\t', b';', b'|', b',']
        .into_iter()
        .find(even)
        .or_else(|| uneven.max_by_key(|&delimiter| first(delimiter)))
        .unwrap_or(WHITESPACE)
}

/// How often a delimiter occurs outside of quotes.
fn count(line: &[u8], delimiter: u8) -> usize {
    let mut quoted = false;
    let mut count = 0;
    for &byte in line {
        quoted ^= byte == b'"';
        count += usize::from(byte == delimiter && !quoted);
    }
    count
}

/// What the first lines of a table say.
pub(super) struct Head {
    /// Names of the columns, if the first line has them.
    pub(super) names: Option<Vec<String>>,
    /// Number of columns.
    pub(super) width: usize,
    /// Where the first row starts, if there is one.
    pub(super) first_row: Option<usize>,
}

/// Reads the first lines; `header` says whether the first has names.
pub(super) fn head(text: &[u8], delimiter: u8, header: Option<bool>) -> Head {
    let mut sample: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
    let Ok(()) = records(text, 0..text.len(), delimiter, |at, record| {
        sample.push((
            at,
            record.iter().map(|field| clean(field).to_vec()).collect(),
        ));
        Ok::<bool, Infallible>(sample.len() < SAMPLE)
    });
    let Some(((start, first), rest)) = sample.split_first() else {
        return Head {
            names: None,
            width: 0,
            first_row: None,
        };
    };
    let has_header = header.unwrap_or_else(|| is_header(first, rest));
    let names = first
        .iter()
        .map(|name| String::from_utf8_lossy(name).into_owned());
    Head {
        names: has_header.then(|| names.collect()),
        width: first.len(),
        first_row: if has_header {
            rest.first().map(|(at, _)| *at)
        } else {
            Some(*start)
        },
    }
}

/// The first line has names if one of its fields is no number where the fields
/// below it are, or is what label columns are usually called. A column of text
/// labels, text from the first line on, is no sign.
fn is_header(first: &[Vec<u8>], rest: &[(usize, Vec<Vec<u8>>)]) -> bool {
    let is_number = |field: &[u8]| text::parse::<f64>(field).is_some();
    let is_text =
        |field: &[u8]| !is_number(field) && !MISSING.contains(&&*field.to_ascii_lowercase());
    if rest.is_empty() {
        return first.iter().all(|field| is_text(field));
    }
    first
        .iter()
        .enumerate()
        .filter(|(_, field)| is_text(field))
        .any(|(column, field)| {
            let below: Vec<&[u8]> = rest
                .iter()
                .filter_map(|(_, row)| Some(row.get(column)?.as_slice()))
                .collect();
            let called_label = super::columns::is_label_name(&String::from_utf8_lossy(field));
            let numbers = below.iter().filter(|field| is_number(field)).count();
            2 * numbers > below.len() || called_label && !below.contains(&field.as_slice())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found() {
        for (text, expected) in [
            ("1,2\n3,4\n", b','),
            ("1\t2\n3\t4\n", b'\t'),
            ("1,5;2\n3,1;4\n", b';'),
            ("1|2\n3|4\n", b'|'),
            ("1 2\n3   4\n", b' '),
            ("1, 2\n3, 4\n", b','),
            ("a,\"b;c\"\n1,\"d\"\n", b','),
            ("1,2\n3\n", b','),
            ("5\n6\n", b' '),
        ] {
            assert_eq!(delimiter(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn headers_are_found() {
        for (text, expected) in [
            ("a,b\n1,2\n", true),
            ("1,2\n3,4\n", false),
            ("5.1,3.5,setosa\n4.9,3.0,virginica\n", false),
            ("width,height,species\n4.9,3.0,virginica\n", true),
            ("0,1,label\n4.9,3.0,virginica\n", true),
            ("0,1,target\n4.9,3.0,1\n", true),
            ("1,?,3\n1,2,3\n", false),
            ("1,2,y\n1,2,n\n1,2,y\n", false),
            ("a,b\n", true),
            ("1,b\n", false),
        ] {
            let head = head(text.as_bytes(), b',', None);
            assert_eq!(head.names.is_some(), expected, "{text:?}");
        }
    }
}
