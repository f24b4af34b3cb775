//! `latido plugin …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use latido_plugin_kit::Mishap;

use super::plugin_file::{
    PluginCheckArgs, PluginInspectArgs, PluginInstallArgs, PluginPackArgs, PluginRecordArgs, PluginReplayArgs,
    PluginVerifyArgs,
};

/// `latido plugin`.
#[derive(Debug, Args)]
pub(crate) struct PluginArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
}

/// What can be done about plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the agent's plugins: state, faults by kind, what waits for them, what they cost
    List(PluginListArgs),
    /// Load a plugin again from its file, and forget its faults: the way back from a quarantine
    ///
    /// The new one is loaded beside the old; where that fails the old one goes on, and the command ends with 4.
    Reload(PluginReloadArgs),
    /// Make a project for a plugin: it builds, and passes its own first case
    New(PluginNewArgs),
    /// Build a plugin's component with its language's own tool
    ///
    /// The tool is looked for in the project (`.venv`, `node_modules`), the active virtual environment and PATH, or where
    /// LATIDO_CARGO, LATIDO_COMPONENTIZE_PY, LATIDO_COMPONENTIZE_QJS, LATIDO_ZIG, LATIDO_CLANG or LATIDO_GO says. What
    /// is missing is told with the command that gets it. A source that does not compile ends the command with 1.
    Build(PluginBuildArgs),
    /// Run a plugin's cases, and after them what every plugin of its kind has to bear
    ///
    /// A case is a file of TOML in the folder `cases`: calls, and what has to come of them. Each runs in a fresh place with a
    /// fixed clock and fixed randomness, without an agent: databases and files are new ones, requests are answered by the case.
    /// Behind the cases comes the suite of the plugin's kind: empty and huge batches, the same twice, new instances, hostile
    /// text, capabilities that refuse. Ends with 1 where something does not pass.
    Test(PluginTestArgs),
    /// Let things go wrong at a plugin's capability calls, and say what was lost
    ///
    /// Entries are delivered to a sink as the agent delivers them, while at one call or at several the plugin is ended, denied,
    /// or finds the disk full or the network gone. Then its databases, files and requests are searched for what it
    /// acknowledged. A rule or strategy has to answer the next question. Ends with 1 where something is lost.
    Chaos(PluginChaosArgs),
    /// Measure what a plugin costs: compiling, loading, instances, calls with 1, 100 and 1,000 records, fuel, memory
    Bench(PluginBenchArgs),
    /// Feed recorded entries to a sink, or recorded subjects to a rule, and show what it makes of them
    ///
    /// Requests are answered with 200 and go nowhere; databases, files and memory are new ones.
    Run(PluginRunArgs),
    /// Show what a component is: kind, interfaces, what it asks for, settings, size, digest, signature
    ///
    /// Works for a broken one too, as far as it can be read, and says what is wrong with it. Ends with 1 if anything is.
    Inspect(PluginInspectArgs),
    /// Say whether the agent would load a component, and with which lines in the config
    ///
    /// It is loaded and configured by the code and within the limits of the agent, with fresh databases and files in the place
    /// of those that it was granted. Ends with 1 if it would not be loaded.
    Check(PluginCheckArgs),
    /// Make one file of a plugin, which says what it is, and who vouches for it
    ///
    /// The file is a component like any other, loadable as it is. The same input gives the same bytes.
    Pack(PluginPackArgs),
    /// Say whether a component is whole, and who vouches for it
    ///
    /// Ends with 1 if it was changed after it was signed, or is not what --key and --digest ask for.
    Verify(PluginVerifyArgs),
    /// Put a component where the agent finds it, compiled, and print the lines of the config
    ///
    /// It lies in the state directory under plugins/installed, one file for each name; one of the same name is replaced, and an
    /// agent that has it loaded takes the new one. Ends with 4 if the agent would not load it.
    Install(PluginInstallArgs),
    /// Record what a running agent's plugin is called with and answers, as a case
    ///
    /// The plugin is loaded anew, watched for a while, and loaded anew again. Values that the config calls secrets (agent.redact),
    /// secrets that it was granted and values of environments are left out. Ends with 1 if it was not called.
    Record(PluginRecordArgs),
    /// Run a recorded case again, with the plugin of the config or another component
    ///
    /// What it asks the host is answered as it was answered when it was recorded. Shows the difference, and ends with 1 if there
    /// is any.
    Replay(PluginReplayArgs),
}

/// `latido plugin list`.
#[derive(Debug, Args)]
pub(crate) struct PluginListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido plugin reload`.
#[derive(Debug, Args)]
pub(crate) struct PluginReloadArgs {
    /// The plugin's name in the config
    #[arg(value_name = "NAME")]
    pub(crate) plugin: String,
}

/// `latido plugin test`.
#[derive(Debug, Args)]
pub(crate) struct PluginTestArgs {
    /// The project's folder, or a component
    #[arg(value_name = "DIR|FILE.wasm", default_value = ".")]
    pub(crate) plugin: PathBuf,
    /// The folder of cases [default: `cases` in the project, or beside the component]
    #[arg(long, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Run only the cases whose name holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Run the suite of the plugin's kind alone
    #[arg(long, conflicts_with_all = ["cases_only", "only", "update"])]
    pub(crate) conformance: bool,
    /// Run the cases alone
    #[arg(long)]
    pub(crate) cases_only: bool,
    /// Write each case's golden file: its answers, capability calls and logs, which later tests are compared with
    #[arg(long)]
    pub(crate) update: bool,
    /// Show all that the plugin logged; where a case does not pass the last lines are shown in any case
    #[arg(long)]
    pub(crate) logs: bool,
    /// Test again whenever a source, a case or the component changes
    #[arg(long)]
    pub(crate) watch: bool,
    /// How the outcome is printed
    #[arg(long, value_enum, default_value_t = TestFormat::Human)]
    pub(crate) format: TestFormat,
    /// Print one JSON document: `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

/// How the outcome of tests is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// For a person
    Human,
    /// The Test Anything Protocol
    Tap,
    /// A JUnit document
    Junit,
    /// One JSON document
    Json,
}

/// `latido plugin chaos`.
#[derive(Debug, Args)]
pub(crate) struct PluginChaosArgs {
    /// The project's folder, or a component
    #[arg(value_name = "DIR|FILE.wasm", default_value = ".")]
    pub(crate) plugin: PathBuf,
    /// What goes wrong; may be given several times [default: each]
    #[arg(long, value_name = "MISHAP", value_parser = mishap)]
    pub(crate) what: Vec<Mishap>,
    /// At which capability call, from 1; may be given several times [default: each of the first twelve]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) at: Vec<u64>,
    /// What the rounds with several mishaps are drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    /// How many such rounds [default: 20, and none with --at]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub(crate) rounds: Option<u64>,
    /// The plugin's settings, a JSON object [default: those of the first case that has some]
    #[arg(long, value_name = "JSON", value_parser = settings)]
    pub(crate) settings: Option<serde_json::Value>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido plugin bench`.
#[derive(Debug, Args)]
pub(crate) struct PluginBenchArgs {
    /// The project's folder, or a component
    #[arg(value_name = "DIR|FILE.wasm", default_value = ".")]
    pub(crate) plugin: PathBuf,
    /// End with 1 where a figure is above this, such as `call-100.fuel=500000`; may be given several times
    #[arg(long, value_name = "FIGURE=NUMBER", value_parser = budget)]
    pub(crate) budget: Vec<(String, f64)>,
    /// Compare with what --json printed before, and end with 1 where a figure has grown: a time by more than three
    /// tenths, fuel or memory by more than a fiftieth
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Calls of each series, which ends after 3 s
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rounds: u32,
    /// The plugin's settings, a JSON object [default: those of the first case that has some]
    #[arg(long, value_name = "JSON", value_parser = settings)]
    pub(crate) settings: Option<serde_json::Value>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido plugin run`.
#[derive(Debug, Args)]
pub(crate) struct PluginRunArgs {
    /// The project's folder, or a component
    #[arg(value_name = "DIR|FILE.wasm", default_value = ".")]
    pub(crate) plugin: PathBuf,
    /// The entries, as `latido events --json` prints them
    #[arg(long, value_name = "FILE", required_unless_present = "status")]
    pub(crate) entries: Option<PathBuf>,
    /// For a rule: status documents, one behind another, as `latido status --json` prints them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["entries", "keep", "batch"])]
    pub(crate) status: Option<PathBuf>,
    /// Keep what the plugin makes in this folder: databases as NAME.db, files as NAME.txt
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Entries in one batch
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) batch: u32,
    /// The plugin's settings, a JSON object [default: those of the first case that has some]
    #[arg(long, value_name = "JSON", value_parser = settings)]
    pub(crate) settings: Option<serde_json::Value>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

fn mishap(text: &str) -> Result<Mishap, String> {
    Mishap::ALL.into_iter().find(|mishap| mishap.name() == text).ok_or_else(|| {
        let known = Mishap::ALL.map(Mishap::name).join(", ");
        format!("it is one of {known}")
    })
}

fn settings(text: &str) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("it is a JSON object, such as {\"key\": 1}".to_owned()) }
}

fn budget(text: &str) -> Result<(String, f64), String> {
    let expected = || "it is a figure and a number, such as call-100.fuel=500000".to_owned();
    let (name, number) = text.split_once('=').ok_or_else(expected)?;
    let number: f64 = number.trim().replace('_', "").parse().map_err(|_| expected())?;
    if number.is_finite() { Ok((name.trim().to_owned(), number)) } else { Err(expected()) }
}

/// `latido plugin new`.
#[derive(Debug, Args)]
pub(crate) struct PluginNewArgs {
    /// The language
    #[arg(long, value_name = "LANGUAGE", value_enum)]
    pub(crate) lang: PluginLanguage,
    /// What the plugin is to do: store what happens, find what is to be told, or decide how jobs go on
    #[arg(long, value_enum)]
    pub(crate) kind: PluginKind,
    /// The plugin's name, and that of its folder: letters a-z, digits and hyphens
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// A language that projects are made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginLanguage {
    /// Rust
    Rust,
    /// Python
    Python,
    /// JavaScript
    Js,
    /// C
    C,
    /// Go
    Go,
}

/// A kind of plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginKind {
    /// Stores what happens
    Sink,
    /// Finds what is to be told
    Rule,
    /// Decides how jobs go on
    Strategy,
}

/// `latido plugin build`.
#[derive(Debug, Args)]
pub(crate) struct PluginBuildArgs {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
}
