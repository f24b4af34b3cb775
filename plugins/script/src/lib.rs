//! A strategy that starts the same command again. The agent hands the checkpoint over in `LATIDO_CHECKPOINT`.

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "resume-strategy" });
    use super::Script;
    export!(Script with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::strategy::{
    Decision, Guest as Strategy, Observation, Output, PluginError, Situation,
};
use bindings::latido::plugin::types::Outcome;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

/// Words by which a failed launch tells that starting the same command again cannot help.
const HOPELESS: [&str; 5] = ["not found", "no such", "not executable", "permission denied", "exec format"];

struct Script;

impl Lifecycle for Script {
    fn describe() -> Description {
        Description {
            name: "script".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Starts the same command again; the checkpoint comes in LATIDO_CHECKPOINT".into(),
            settings_schema: r#"{"type":"object","additionalProperties":false,"properties":{}}"#.into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        // The host gives a JSON object; an empty one is all this strategy knows.
        let inner = settings.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match inner.map(str::trim) {
            Some("") => Ok(()),
            Some(_) | None => Err(PluginError::InvalidConfig("this strategy has no settings".into())),
        }
    }
}

impl Strategy for Script {
    fn decide(situation: Situation) -> Result<Decision, PluginError> {
        // Somebody may have mended what was wrong, or wants it all done once more.
        if situation.attributes.iter().any(|attribute| attribute.key == "by-hand" && attribute.value == "true") {
            return Ok(Decision::Launch(situation.command));
        }
        let newest = situation.attempts.iter().max_by_key(|attempt| attempt.number);
        Ok(match newest.and_then(|attempt| attempt.outcome.as_ref()) {
            Some(Outcome::Stopped(by)) => Decision::Hold(format!("it was stopped: {by}")),
            // Without a limit of its attempts it is to be tried until somebody has put there what is missing.
            Some(Outcome::LaunchFailed(why)) if situation.budget.attempts_left.is_some() && is_hopeless(why) => {
                Decision::Hold(format!("the command cannot be started, and starting it again would not help: {why}"))
            }
            Some(
                // With 0 too: nobody asks after a good end but where the policy says that the job is to run on.
                Outcome::Exited(_)
                | Outcome::Signaled(_)
                | Outcome::Lost(_)
                | Outcome::LaunchFailed(_)
                | Outcome::OutOfMemory
                | Outcome::LimitReached(_)
                | Outcome::Other(_),
            )
            | None => Decision::Launch(situation.command),
        })
    }

    fn observe(_output: Output) -> Result<Option<Observation>, PluginError> {
        Ok(None) // a script's output means nothing to it
    }
}

fn is_hopeless(why: &str) -> bool {
    let why = why.to_lowercase();
    HOPELESS.iter().any(|word| why.contains(word))
}
