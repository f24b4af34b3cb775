use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A subject's name: `[a-z0-9][a-z0-9._-]{0,63}`, so that it can be a folder and never a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubjectName(String);

/// Why a text is not a subject's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("a name cannot be empty")]
    Empty,
    /// More than [`SubjectName::LENGTH_MAX`] bytes.
    #[error("a name has at most {max} characters, this one has {0}", max = SubjectName::LENGTH_MAX)]
    TooLong(usize),
    /// A first character that would hide the folder or look like an option.
    #[error("a name begins with a letter a-z or a digit, not with {0:?}")]
    FirstCharacter(char),
    /// Any other character outside the set.
    #[error("a name holds a-z, 0-9, '.', '_' and '-' only, not {0:?}")]
    Character(char),
}

impl SubjectName {
    /// Short enough for one folder name on every file system, with room for a suffix.
    pub const LENGTH_MAX: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a name out of any text (a program's path), by dropping what a name cannot hold.
    ///
    /// Returns `job` when nothing is left.
    pub fn suggest(text: &str) -> Self {
        let base = text.rsplit('/').next().unwrap_or(text);
        let kept: String = base
            .chars()
            .map(|c| c.to_ascii_lowercase())
            .map(|c| if is_name_character(c) { c } else { '-' })
            .skip_while(|c| !c.is_ascii_alphanumeric())
            .take(Self::LENGTH_MAX - 8) // room for `-` and a number
            .collect();
        let kept = kept.trim_end_matches(['-', '.', '_']);
        Self(if kept.is_empty() { "job".to_owned() } else { kept.to_owned() })
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-')
}

impl FromStr for SubjectName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check(text).map(|()| Self(text.to_owned()))
    }
}

fn check(text: &str) -> Result<(), NameError> {
    let first = text.chars().next().ok_or(NameError::Empty)?;
    if !(first.is_ascii_lowercase() || first.is_ascii_digit()) {
        return Err(NameError::FirstCharacter(first));
    }
    if let Some(c) = text.chars().find(|c| !is_name_character(*c)) {
        return Err(NameError::Character(c));
    }
    if text.len() > SubjectName::LENGTH_MAX {
        return Err(NameError::TooLong(text.len()));
    }
    Ok(())
}

impl TryFrom<String> for SubjectName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        check(&text).map(|()| Self(text))
    }
}

impl From<SubjectName> for String {
    fn from(name: SubjectName) -> Self {
        name.0
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field case C204: names that are paths, escapes or hostile text.
    #[test]
    fn c204_a_name_is_never_a_path() {
        let long = "a".repeat(300);
        for bad in
            ["", ".", "..", "../../x", "/etc/x", "a/b", "a%2f..%2fb", "a\nb", "a\0b", "-x", "_x", "A", "é", "😀", &long]
        {
            assert!(bad.parse::<SubjectName>().is_err(), "{bad:?} was accepted");
        }
        for good in ["a", "0", "catalogue", "a.b_c-d", &"a".repeat(64)] {
            assert_eq!(good.parse::<SubjectName>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_suggestion_is_always_a_name() {
        for text in ["/usr/bin/Python3.11", "", "///", "..", "./🦀.sh", &"x".repeat(500), "my job"] {
            let name = SubjectName::suggest(text);
            assert_eq!(name.as_str().parse::<SubjectName>().unwrap(), name, "{text:?}");
        }
        assert_eq!(SubjectName::suggest("/opt/Nightly Backup.sh").as_str(), "nightly-backup.sh");
    }
}
