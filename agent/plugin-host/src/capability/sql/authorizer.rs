//! Decides what a plugin's statement may do: an allow-list, since nobody knows all that SQLite can do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Pragmas that only tell, and the one number that a schema may keep.
const PRAGMAS: [&str; 8] = [
    "freelist_count",
    "index_info",
    "index_list",
    "page_count",
    "page_size",
    "table_info",
    "table_list",
    "user_version",
];

/// Functions that compute from their arguments, the clock or chance, and nothing else.
const FUNCTIONS: [&str; 91] = [
    "abs",
    "avg",
    "ceil",
    "ceiling",
    "changes",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "count",
    "cume_dist",
    "date",
    "datetime",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_each",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_tree",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "max",
    "median",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "pow",
    "power",
    "printf",
    "quote",
    "random",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "time",
    "timediff",
    "total",
    "trim",
    "typeof",
    "unhex",
    "unixepoch",
    "upper",
];

/// Shared by a connection, which asks it, and the host, which reads what was refused.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorizer {
    /// whether the statement is the host's own
    trusted: Arc<AtomicBool>,
    refused: Arc<Mutex<Option<String>>>,
}

impl Authorizer {
    /// Lets the host's own statements through: transactions are its business alone.
    pub(super) fn trusted<T>(&self, work: impl FnOnce() -> T) -> T {
        self.trusted.store(true, Ordering::Relaxed);
        let done = work();
        self.trusted.store(false, Ordering::Relaxed);
        done
    }

    /// Returns, once, what was refused since it was asked last.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        if self.trusted.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        match refusal(&context.action) {
            None => Authorization::Allow,
            Some(what) => {
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                refused.get_or_insert(what);
                Authorization::Deny
            }
        }
    }
}

/// What is refused about an action, in words; nothing where it may be done.
#[expect(clippy::wildcard_enum_match_arm, reason = "an allow-list: what SQLite adds is refused")]
fn refusal(action: &AuthAction<'_>) -> Option<String> {
    match action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Recursive => None,
        AuthAction::Function { function_name } => (!is_listed(&FUNCTIONS, function_name))
            .then(|| format!("the function `{function_name}` is not among those that a plugin may call")),
        AuthAction::Pragma { pragma_name, .. } => (!is_listed(&PRAGMAS, pragma_name))
            .then(|| format!("`PRAGMA {pragma_name}` is not among those that a plugin may use")),
        AuthAction::Attach { filename } => {
            Some(format!("ATTACH of `{filename}`: a plugin has the granted database alone"))
        }
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            Some("transactions are the host's: `execute` is one".to_owned())
        }
        other => Some(format!("{other:?} is not among what a plugin may do")),
    }
}

/// SQLite's names know no case.
fn is_listed(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(name))
}
