//! Text that others wrote, made harmless for HTML and SVG, and for file names.

use std::fmt;

/// Text for an element or a quoted attribute.
///
/// Both kinds of quotes are escaped, so one rule serves both places. Control
/// characters are not allowed in XML and would make a saved SVG unreadable.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_str(" ")?,
                c if c.is_control() || is_noncharacter(c) => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Letters, digits and dashes: safe as an anchor and as a file name.
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() {
        "unnamed".into()
    } else {
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_harmless() {
        let text = Escaped("<script>alert(\"a\" & 'b')</script>\u{1b}[2J").to_string();
        assert_eq!(
            text,
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;\u{fffd}[2J"
        );
    }

    #[test]
    fn slugs_are_file_names() {
        assert_eq!(slug("Figure 2a: error (%)"), "figure-2a-error");
        assert_eq!(slug("../../etc/passwd"), "etc-passwd");
        assert_eq!(slug("<>"), "unnamed");
    }
}
