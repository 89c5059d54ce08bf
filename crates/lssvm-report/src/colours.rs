//! The colours, in one place: as variables of the page, so that it can be light
//! or dark, and as fixed values for pictures that stand alone.

/// A role that a colour plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Behind everything.
    Surface,
    /// Text.
    Ink,
    /// Text of less weight: ticks, captions.
    Soft,
    /// Grid lines.
    Grid,
    /// The frame and the axes.
    Axis,
    /// Reference lines.
    Mark,
    /// Errors in a heat map.
    Wrong,
    /// The diagonal of a heat map.
    Right,
    /// Curve number so and so.
    Series(usize),
}

/// Where a drawing is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// In a page, whose variables decide.
    Page,
    /// In a file of its own, light.
    Fixed,
}

/// Roles with a name, and their light and dark values.
const ROLES: [(Colour, &str, &str, &str); 8] = [
    (Colour::Surface, "surface", "#ffffff", "#15181c"),
    (Colour::Ink, "ink", "#1b1f24", "#e7e9ec"),
    (Colour::Soft, "soft", "#565d66", "#a6adb7"),
    (Colour::Grid, "grid", "#e6e8eb", "#2b3037"),
    (Colour::Axis, "axis", "#9aa1aa", "#626a75"),
    (Colour::Mark, "mark", "#6b5b00", "#d9c25a"),
    (Colour::Wrong, "wrong", "#d9480f", "#f0602a"),
    (Colour::Right, "right", "#1c6ea4", "#4a9fd4"),
];

/// Light and dark colours of curves: the hues of Okabe and Ito, which are told
/// apart with any kind of colour vision, darkened or lightened until each has
/// a contrast of at least 3 with the surface (their yellow has 1.3 on white).
const SERIES: [(&str, &str); 8] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8f4a"),
    ("#00835f", "#2ec79a"),
    ("#a4478a", "#e39cc8"),
    ("#8a6a00", "#e8c34a"),
    ("#3f4650", "#c9ced6"),
    ("#2f7fb8", "#8fc7ff"),
    ("#b3261e", "#ff8a80"),
];

/// Dashes, so that curves are told apart without colour as well. Long strokes
/// and short gaps: a noisy curve must not fall to pieces.
const DASHES: [&str; 8] = [
    "",
    "9 3",
    "3 2",
    "12 3 3 3",
    "18 4",
    "6 2 2 2",
    "2 2",
    "14 2 2 2 2 2",
];

impl Colour {
    /// As the value of `fill` or `stroke`.
    pub fn paint(self, theme: Theme) -> String {
        match (self, theme) {
            (Colour::Series(i), Theme::Page) => format!("var(--series-{})", i % SERIES.len()),
            (Colour::Series(i), Theme::Fixed) => SERIES[i % SERIES.len()].0.into(),
            (role, theme) => {
                let (_, name, light, _) = named(role);
                match theme {
                    Theme::Page => format!("var(--{name})"),
                    Theme::Fixed => light.into(),
                }
            }
        }
    }
}

fn named(role: Colour) -> (Colour, &'static str, &'static str, &'static str) {
    let found = ROLES.into_iter().find(|r| r.0 == role);
    found.unwrap_or(ROLES[1])
}

/// The dash pattern of a curve; empty for a solid line.
pub fn dashes(series: usize) -> &'static str {
    DASHES[series % DASHES.len()]
}

/// The variables as declarations of a style sheet, for other pages of the same look.
pub fn variables(dark: bool) -> String {
    let pick = |light: &'static str, night: &'static str| if dark { night } else { light };
    let mut out = String::new();
    for (_, name, light, night) in ROLES {
        out += &format!("--{name}:{};", pick(light, night));
    }
    for (i, (light, night)) in SERIES.into_iter().enumerate() {
        out += &format!("--series-{i}:{};", pick(light, night));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(hex: &str) -> f64 {
        let channel = |i: usize| {
            let v = u8::from_str_radix(&hex[i..i + 2], 16).unwrap() as f64 / 255.0;
            if v <= 0.04045 {
                v / 12.92
            } else {
                ((v + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn curves_and_text_stand_out_in_both_themes() {
        let surface = named(Colour::Surface);
        for (light, dark) in SERIES {
            assert!(contrast(light, surface.2) >= 3.0, "{light}");
            assert!(contrast(dark, surface.3) >= 3.0, "{dark}");
        }
        for role in [Colour::Ink, Colour::Soft, Colour::Mark] {
            let role = named(role);
            assert!(contrast(role.2, surface.2) >= 4.5, "{}", role.1);
            assert!(contrast(role.3, surface.3) >= 4.5, "{}", role.1);
        }
    }
}
