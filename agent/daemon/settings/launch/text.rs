//! How the values of a launch are written.

use std::fmt;
use std::path::PathBuf;

use latido_protocol::files::{Bound, CgroupPlace, EnvironmentFrom, Rlimit};
use schemars::{Schema, json_schema};

use crate::settings::text::{Size, Written};

/// A file mode creation mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umask(pub u32);

impl Written for Umask {
    const WHAT: &'static str = "a mask in octal such as \"022\"";

    fn read(text: &str) -> Result<Self, String> {
        let mask = u32::from_str_radix(text.trim(), 8).ok().filter(|mask| *mask <= 0o777);
        mask.map(Self).ok_or_else(|| format!("{text:?} is not {}", Self::WHAT))
    }

    fn write(&self) -> String {
        format!("{:03o}", self.0)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^0?[0-7]{1,3}$", "examples": ["022"] })
    }
}

/// A size, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit(pub Option<u64>);

impl fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write())
    }
}

impl Written for SizeLimit {
    const WHAT: &'static str = "a size such as 2GiB, or `none` for no limit";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "none" { Ok(Self(None)) } else { Size::read(text).map(|size| Self(Some(size.0))) }
    }

    fn write(&self) -> String {
        self.0.map_or_else(|| "none".to_owned(), |size| Size(size).write())
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(none|[0-9]+ ?(B|KiB|MiB|GiB))$",
            "examples": ["none", "2GiB"]
        })
    }
}

/// Where variables come from: a word, or names with commas between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::settings) struct Variables(pub(in crate::settings) EnvironmentFrom);

impl Written for Variables {
    const WHAT: &'static str = "`inherit`, `clean`, or names of variables such as \"LANG,TZ\"";

    fn read(text: &str) -> Result<Self, String> {
        parse_environment(text).map(Self)
    }

    fn write(&self) -> String {
        match &self.0 {
            EnvironmentFrom::Inherit => "inherit".to_owned(),
            EnvironmentFrom::Clean => "clean".to_owned(),
            EnvironmentFrom::List(names) => names.join(","),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "examples": ["inherit", "clean", "LANG,TZ"] })
    }
}

/// One limit of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::settings) struct RlimitText(pub(in crate::settings) Rlimit);

impl Written for RlimitText {
    const WHAT: &'static str = "a limit such as 1024, \"1024..4096\" (soft and hard) or \"unlimited\"";

    fn read(text: &str) -> Result<Self, String> {
        let bound = |text: &str| text.trim().parse::<Bound>().map_err(|_| format!("{text:?} is not {}", Self::WHAT));
        let (soft, hard) = match text.split_once("..") {
            Some((soft, hard)) => (bound(soft)?, bound(hard)?),
            None => (bound(text)?, bound(text)?),
        };
        Ok(Self(Rlimit { soft, hard: Some(hard) }))
    }

    fn write(&self) -> String {
        match self.0.hard {
            Some(hard) if hard != self.0.soft => format!("{}..{hard}", self.0.soft),
            Some(_) | None => self.0.soft.to_string(),
        }
    }

    fn schema() -> Schema {
        let bound = "([0-9]+|unlimited)";
        json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": format!("^{bound}(\\.\\.{bound})?$") }],
            "examples": [1024, "1024..4096", "unlimited"]
        })
    }
}

impl Written for CgroupPlace {
    const WHAT: &'static str = "`auto`, `none`, or the absolute path of a folder";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            path if path.starts_with('/') => Ok(Self::Under(PathBuf::from(path))),
            other => Err(format!("{other:?} is not {}", Self::WHAT)),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::None => "none".to_owned(),
            Self::Under(path) => path.display().to_string(),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^(auto|none|/.*)$", "examples": ["auto", "none"] })
    }
}

/// Reads a size, or `none`.
///
/// # Errors
/// In words, when it is neither.
pub fn parse_size_limit(text: &str) -> Result<SizeLimit, String> {
    SizeLimit::read(text)
}

/// Reads a file mode creation mask.
///
/// # Errors
/// In words, when it is none.
pub fn parse_umask(text: &str) -> Result<Umask, String> {
    Umask::read(text)
}

/// Reads where variables come from.
///
/// # Errors
/// In words, when a name is none.
pub fn parse_environment(text: &str) -> Result<EnvironmentFrom, String> {
    match text.trim() {
        "inherit" => Ok(EnvironmentFrom::Inherit),
        "clean" => Ok(EnvironmentFrom::Clean),
        names => {
            let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
            match names.iter().find(|name| name.is_empty() || name.contains(['=', '\0', ' '])) {
                Some(bad) => Err(format!("{bad:?} is not the name of a variable; write {}", Variables::WHAT)),
                None => Ok(EnvironmentFrom::List(names)),
            }
        }
    }
}

/// Reads `NAME=SOFT..HARD`.
///
/// # Errors
/// In words, when it is none.
pub fn parse_rlimit(text: &str) -> Result<(String, Rlimit), String> {
    let (name, limit) = text.split_once('=').ok_or("it has no `=`; write NAME=LIMIT such as nofile=1024")?;
    Ok((name.to_owned(), RlimitText::read(limit)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Written + PartialEq + fmt::Debug>(text: &str) {
        let value = T::read(text).unwrap();
        assert_eq!(value.write(), text);
    }

    #[test]
    fn what_is_written_reads_back() {
        round_trip::<Umask>("027");
        round_trip::<SizeLimit>("none");
        round_trip::<SizeLimit>("2GiB");
        for text in ["inherit", "clean", "LANG,TZ"] {
            round_trip::<Variables>(text);
        }
        for text in ["1024", "1024..4096", "0..unlimited", "unlimited"] {
            round_trip::<RlimitText>(text);
        }
        for text in ["auto", "none", "/sys/fs/cgroup/jobs"] {
            round_trip::<CgroupPlace>(text);
        }
    }

    #[test]
    fn rubbish_is_refused() {
        for bad in ["", "8", "1777", "-1", "0x1f"] {
            assert!(Umask::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "1024", "-1MiB", "endless"] {
            assert!(SizeLimit::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "A=B", "LANG,,TZ", "LANG TZ"] {
            assert!(Variables::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "-1", "1..", "..5", "1..2..3", "infinity"] {
            assert!(RlimitText::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "jobs", "Auto"] {
            assert!(CgroupPlace::read(bad).is_err(), "{bad}");
        }
        assert!(parse_rlimit("nofile").is_err());
    }
}
