//! The page at `/`: one file that asks nothing of anybody but this server.

use lssvm::model::{AnyModel, Outputs};
use lssvm_report::variables;
use serde_json::{Value, json};

use crate::service::kernel_name;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const INPUT: &str = include_str!("input.js");
const SCRIPT: &str = include_str!("page.js");

/// The page may run its own script and ask this server, and nothing else.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                          img-src data: blob:; connect-src 'self'; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'self'";

/// The page for a model with this metadata.
pub fn html(metadata: &Value, model: &AnyModel) -> String {
    let description = model.description();
    let input = &description.input;
    let facts = json!({
        "model": metadata,
        "classes": matches!(description.outputs, Outputs::Classes { .. }),
        "names": description.outputs.names(),
        "features": input.n_features,
        "featureNames": input.feature_names,
        "labelNames": input.label_names,
        "image": input.image,
        "calibrated": description.scaling.is_some(),
        "support": model.n_support(),
        "kernel": kernel_name(&description.kernel),
        "precision": model.precision(),
    });
    let colours = format!(
        ":root{{{}}}\n@media (prefers-color-scheme: dark){{:root{{{}}}}}\n",
        variables(false),
        variables(true)
    );
    PAGE.replace("/*colours*/", &colours)
        .replace("/*style*/", STYLE)
        .replace("/*script*/", &format!("{INPUT}{SCRIPT}"))
        // Last, so that no name can be taken for one of the places above.
        .replace("/*facts*/", &in_script(&facts))
}

/// JSON that can stand in a script: nothing in it ends the element.
fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_end_the_script() {
        let text = in_script(&json!({"a": "</script><!--"}));
        assert!(!text.contains('<'), "{text}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["a"], "</script><!--");
    }
}
