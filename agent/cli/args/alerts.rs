//! `latido alerts …`

use clap::{Args, Subcommand};
use latido_protocol::{Span, SubjectName};

/// `latido alerts`.
#[derive(Debug, Args)]
pub(crate) struct AlertsArgs {
    /// What is to be done; without it they are listed.
    #[command(subcommand)]
    pub(crate) command: Option<AlertsCommand>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What can be done about alerts.
#[derive(Debug, Subcommand)]
pub(crate) enum AlertsCommand {
    /// List all alerts that are not over, and all silences
    ///
    /// Ends with 1 if anything fires. Without an agent what is recorded is shown.
    List,
    /// Keep alerts quiet for a time, or until they are resolved
    ///
    /// What is silenced is still listed, and told when the silence ends and it still holds.
    Silence(SilenceArgs),
    /// End a silence
    Unsilence {
        /// Its number, as the list shows it
        #[arg(value_name = "NUMBER")]
        number: u32,
    },
    /// Say that an alert is known: no reminders until it is resolved or gets worse
    Ack {
        /// The alert, as the list shows it
        #[arg(value_name = "ALERT")]
        fingerprint: String,
        /// Who knows of it; $USER if not given
        #[arg(long, value_name = "WHO")]
        by: Option<String>,
    },
    /// Send a test through everything that alerts go through
    Test,
}

/// `latido alerts silence`.
#[derive(Debug, Args)]
pub(crate) struct SilenceArgs {
    /// What is to be quiet.
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// How long; at most 30 days
    #[arg(long = "for", value_name = "D", allow_hyphen_values = true, required_unless_present = "until_resolved")]
    pub(crate) length: Option<Span>,
    /// End it as soon as what it covers has fired and is over
    #[arg(long)]
    pub(crate) until_resolved: bool,
    /// Why, for those who read the list
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    /// Who asks; $USER if not given
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// What is to be quiet.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ScopeArgs {
    /// Everything about this subject
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Option<SubjectName>,
    /// Everything that this rule finds
    #[arg(long, value_name = "NAME")]
    pub(crate) rule: Option<String>,
    /// One alert, as the list shows it
    #[arg(long, value_name = "ALERT")]
    pub(crate) alert: Option<String>,
}
