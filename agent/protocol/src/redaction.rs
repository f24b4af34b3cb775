//! What is left out of a command line where it is shown to people, or kept for them.

use serde::{Deserialize, Serialize};

/// What stands in the place of what is left out.
const LEFT_OUT: &str = "***";

/// Names whose values are secrets, wherever nothing else is said.
const NAMES: [&str; 16] = [
    "*token*",
    "*password*",
    "*passwd*",
    "*passphrase*",
    "*secret*",
    "*credential*",
    "*api-key*",
    "*api_key*",
    "*apikey*",
    "*private-key*",
    "*private_key*",
    "*access-key*",
    "*access_key*",
    "*authorization*",
    "*cookie*",
    "*bearer*",
];

/// Names whose values are left out: patterns in which `*` stands for anything, small and capital letters alike.
///
/// A value is what follows its name in the next argument (`--token abc`), after `=` (`--token=abc`, `API_TOKEN=abc`) or after
/// `:` (`Authorization: Bearer abc`); inside of an argument too, as in a shell's script. What stands for a name and its password
/// in an address (`https://name:password@host`) is always left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Redaction {
    names: Vec<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Self::new(NAMES.map(str::to_owned).to_vec())
    }
}

impl Redaction {
    /// Leaves out the values of these names.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self { names }
    }

    /// The patterns, as they were given.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A command line as it may be shown.
    #[must_use]
    pub fn command(&self, words: &[String]) -> Vec<String> {
        let mut is_value = false;
        let shown = words.iter().enumerate().map(|(index, word)| {
            if std::mem::take(&mut is_value) && !word.starts_with('-') {
                return LEFT_OUT.to_owned();
            }
            is_value = index > 0 && self.is_option(word);
            self.text(word)
        });
        shown.collect()
    }

    /// The same in one line.
    #[must_use]
    pub fn line(&self, words: &[String]) -> String {
        self.command(words).join(" ")
    }

    /// A text as it may be shown, such as a script inside of an argument.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        let mut is_value = false;
        while !rest.is_empty() {
            let space = rest.len() - rest.trim_start().len();
            shown.push_str(&rest[..space]);
            rest = &rest[space..];
            let word = &rest[..word_length(rest)];
            rest = &rest[word.len()..];
            if std::mem::take(&mut is_value) && !word.is_empty() && !word.starts_with('-') {
                shown.push_str(LEFT_OUT);
                // `Authorization: Bearer abc`: the word before the secret is one of its value.
                is_value = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
                continue;
            }
            is_value = self.is_option(word) || self.is_header(word);
            shown.push_str(&self.word(word));
        }
        shown
    }

    /// One word, with its own value left out where it has one.
    fn word(&self, word: &str) -> String {
        if let Some((name, value)) = word.split_once('=')
            && !value.is_empty()
            && self.is_secret(name)
        {
            return format!("{name}={LEFT_OUT}");
        }
        if let Some((name, value)) = word.split_once(':')
            && !value.is_empty()
            && !value.starts_with("//")
            && self.is_secret(name)
        {
            return format!("{name}:{LEFT_OUT}");
        }
        without_user(word)
    }

    fn is_option(&self, word: &str) -> bool {
        word.starts_with('-') && !word.contains('=') && self.is_secret(word)
    }

    fn is_header(&self, word: &str) -> bool {
        word.ends_with(':') && self.is_secret(word)
    }

    /// Whether the value of this name is a secret.
    #[must_use]
    pub fn is_secret(&self, name: &str) -> bool {
        let quoted = |letter: char| matches!(letter, '"' | '\'' | '-' | ':');
        let name = name.trim_matches(quoted).to_lowercase();
        !name.is_empty()
            && self.names.iter().any(|pattern| matches(&pattern.trim_start_matches('-').to_lowercase(), &name))
    }
}

/// Bytes of the word that a text begins with; what is quoted belongs to it.
fn word_length(text: &str) -> usize {
    let mut quote = None;
    for (index, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '"' | '\'') if index > 0 => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            (None, letter) if letter.is_whitespace() => return index,
            _ => {}
        }
    }
    text.len()
}

/// An address without who asks for it.
fn without_user(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{LEFT_OUT}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

/// Whether a pattern with `*` stands for a name.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    rest.char_indices().map(|(index, _)| index).chain([rest.len()]).any(|index| matches(after, &rest[index..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[&str]) -> String {
        Redaction::default().line(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_values_of_secret_names_are_left_out_however_they_are_given() {
        for line in [
            &["x", "--token", "hunter2"][..],
            &["x", "--token=hunter2"],
            &["x", "-password", "hunter2"],
            &["env", "DB_PASSWORD=hunter2", "x"],
            &["curl", "-H", "Authorization: Bearer hunter2"],
            &["curl", "-H", "X-Api-Key:hunter2"],
            &["sh", "-c", "curl --token hunter2 host; true"],
            &["sh", "-c", "API_TOKEN='hunter2 hunter2' run --client-secret=hunter2"],
            &["git", "clone", "https://name:hunter2@host/path"],
            &["x", "--url=postgres://name:hunter2@host/db"],
        ] {
            let line = shown(line);
            assert!(!line.contains("hunter2") && line.contains(LEFT_OUT), "{line}");
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for line in [
            &["python3", "catalogue.py", "--limit", "5", "/data"][..],
            &["token", "list"],
            &["sh", "-c", "exec  sleep 1000  # two spaces stay"],
            &["curl", "https://host:8080/a@b", "mail@host"],
            &["x", "--token", "--verbose"],
        ] {
            assert_eq!(shown(line), line.join(" "));
        }
    }

    #[test]
    fn own_names_replace_the_ones_that_are_built_in() {
        let own = Redaction::new(vec!["--pin".to_owned(), "CUSTOMER_*".to_owned()]);
        let words = ["x", "--pin", "1234", "customer_name=Ann", "--token", "t"].map(str::to_owned);
        assert_eq!(own.line(&words), "x --pin *** customer_name=*** --token t");
        assert_eq!(Redaction::new(Vec::new()).line(&words), words.join(" "));
    }

    #[test]
    fn a_star_stands_for_anything_and_nothing_else_does() {
        for (pattern, name, is_one) in [
            ("*token*", "api_token_2", true),
            ("*token*", "token", true),
            ("token", "tokens", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxc", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), is_one, "{pattern} {name}");
        }
    }
}
