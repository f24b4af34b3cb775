//! Compares what is expected with what came, and says where they differ.

use serde_json::Value;
use similar::TextDiff;

/// Differences that are told; who has more has another problem.
const TOLD_MAX: usize = 10;

/// Where what came is not what was expected. What was not written may be anything; lists match in length and order. A text
/// may be expected as `{ contains = "words" }`.
pub(crate) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    compare(expected, found, "", &mut differences);
    differences.truncate(TOLD_MAX);
    differences
}

fn compare(expected: &Value, found: &Value, path: &str, differences: &mut Vec<String>) {
    if let (Some(words), Value::String(text)) = (contains(expected), found) {
        if !text.contains(words) {
            differences.push(format!("{}: expected a text with {words:?}, found {text:?}", named(path)));
        }
        return;
    }
    match (expected, found) {
        (Value::Object(wanted), Value::Object(there)) => {
            for (key, wanted) in wanted {
                let known = there.iter().find(|(name, _)| name.replace('-', "_") == key.replace('-', "_"));
                match known {
                    Some((name, value)) => compare(wanted, value, &below(path, name), differences),
                    None => {
                        let keys: Vec<&str> = there.keys().map(String::as_str).collect();
                        let has = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
                        differences.push(format!("{}: expected {wanted}, it has {has}", named(&below(path, key))));
                    }
                }
            }
        }
        (Value::Array(wanted), Value::Array(there)) => {
            if wanted.len() != there.len() {
                let (count, found) = (wanted.len(), short(found));
                differences.push(format!("{}: expected {count} of them, found {}: {found}", named(path), there.len()));
                return;
            }
            for (index, (wanted, there)) in wanted.iter().zip(there).enumerate() {
                compare(wanted, there, &format!("{path}[{index}]"), differences);
            }
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
        (Value::String(one), Value::String(other)) if one != other && one.contains('\n') => {
            differences.push(format!("{}:\n{}", named(path), lines(one, other)));
        }
        (one, other) if one == other => {}
        (one, other) => differences.push(format!("{}: expected {}, found {}", named(path), short(one), short(other))),
    }
}

/// The words of `{ contains = "words" }`.
fn contains(expected: &Value) -> Option<&str> {
    expected.as_object().filter(|table| table.len() == 1)?.get("contains")?.as_str()
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the answer" } else { path }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Two texts line by line: `-` is expected and missing, `+` came and was not expected.
pub(crate) fn lines(expected: &str, found: &str) -> String {
    let difference = TextDiff::from_lines(expected, found);
    difference.unified_diff().context_radius(2).header("expected", "found").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::differences;

    #[test]
    fn what_is_not_written_may_be_anything_and_the_rest_is_named_by_its_path() {
        let found = json!({ "findings": [{ "key": "stale", "severity": "critical", "summary": "night is stale" }] });
        assert!(differences(&json!({}), &found).is_empty());
        assert!(differences(&json!({ "findings": [{ "summary": { "contains": "stale" } }] }), &found).is_empty());
        let expected = json!({ "findings": [{ "key": "stale", "severity": "warning" }] });
        assert_eq!(differences(&expected, &found), [r#"findings[0].severity: expected "warning", found "critical""#]);
        let told = differences(&json!({ "findigs": [], "findings": [] }), &found).join("\n");
        assert!(
            told.contains("findigs: expected [], it has findings") && told.contains("expected 0 of them"),
            "{told}"
        );
        assert!(differences(&json!({ "a_b": 1 }), &json!({ "a-b": 1.0 })).is_empty());
    }
}
