//! `latido replay`.

use std::path::Path;
use std::process::ExitCode;

use latido::recording::{self, RecordingError};
use latido::replay::UnderSettings;
use latido::settings::Settings;
use latido_driver::recording::Line;
use latido_driver::replay::{AsRecorded, Decided, Replay, ReplayError, Signs, compare, decided_then};
use latido_protocol::WallTime;

use crate::args::{GlobalArgs, ReplayArgs};
use crate::context::settings_failure;
use crate::failure::{Failure, chain};
use crate::print;

mod document;
mod words;

use document::Document;

/// Carries the command out.
pub(crate) fn run(args: &ReplayArgs, global: &GlobalArgs) -> Result<ExitCode, Failure> {
    let other = global.config.as_deref().map(|file| Settings::load(Some(file)));
    let other = other.transpose().map_err(|error| settings_failure(&error))?;
    let replayed = replay(&args.file, other)?;
    for number in &replayed.damaged {
        print::warn(&format!(
            "line {number} of {} is damaged; what follows up to the next beginning is left out",
            args.file.display()
        ));
    }
    let document = Document::of(replayed, &args.file, global.config.as_deref());
    for kept in &document.kept {
        print::warn(&format!("it keeps the settings it had: {kept} in the config"));
    }
    if args.json {
        print::json(&document)?;
    } else {
        print::out(&words::text(&document))?;
    }
    Ok(if document.differs() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// What came of a replay.
struct Replayed {
    /// numbers of lines that cannot be read
    damaged: Vec<u64>,
    /// the calendar at the first and at the last line
    at: Option<(WallTime, WallTime)>,
    steps: u64,
    /// beginnings, and those of them in the middle of an agent's life
    beginnings: u64,
    in_the_middle: u64,
    /// the program that wrote it
    recorded_by: String,
    /// what was decided then, as it stands in the recording
    then: Vec<Decided>,
    /// what the recorded settings decide
    again: Vec<Decided>,
    /// what the other settings decide, and what they say nothing about
    other: Option<(Vec<Decided>, Vec<String>)>,
    signs: Signs,
}

impl Replayed {
    fn take(&mut self, line: &Line) {
        self.signs.take(line);
        let wall = match line {
            Line::Began(beginning) => {
                self.beginnings += 1;
                self.in_the_middle += u64::from(!beginning.is_start);
                self.recorded_by.clone_from(&beginning.latido);
                beginning.at
            }
            Line::Step(step) => {
                self.steps += 1;
                self.then.extend(decided_then(step, self.signs.listened()));
                step.passed.wall
            }
            Line::AlertAsked { wall, .. } | Line::AbsentForgotten { wall, .. } => *wall,
        };
        self.at = Some((self.at.map_or(wall, |(from, _)| from), wall));
    }
}

fn replay(file: &Path, other: Option<Settings>) -> Result<Replayed, Failure> {
    let mut replayed = Replayed {
        damaged: Vec::new(),
        at: None,
        steps: 0,
        beginnings: 0,
        in_the_middle: 0,
        recorded_by: String::new(),
        then: Vec::new(),
        again: Vec::new(),
        other: None,
        signs: Signs::default(),
    };
    let mut again = Replay::new(AsRecorded);
    let mut under = other.map(|settings| Replay::new(UnderSettings::new(settings)));
    let mut failed = None;
    let damaged = recording::read(file, |line| {
        replayed.take(&line);
        let under = under.as_mut().map_or(Ok(()), |under| under.take(&line));
        if let Err(error) = again.take(&line).and(under) {
            failed.get_or_insert(error);
        }
    });
    replayed.damaged = damaged.map_err(|error| unreadable(&error))?;
    if let Some(error) = failed {
        return Err(not_replayed(&error));
    }
    replayed.again = again.into_decided();
    replayed.other = under.map(|under| {
        let kept = under.conditions().kept().iter().cloned().collect();
        (under.into_decided(), kept)
    });
    Ok(replayed)
}

fn unreadable(error: &RecordingError) -> Failure {
    let what = "cannot replay the recording";
    let why = format!("cannot {}", chain(error));
    match error {
        RecordingError::Read { .. } => {
            Failure::usage(what, why, "name a recording, such as recording.jsonl of a state directory")
        }
        RecordingError::Empty { .. } => Failure::usage(
            what,
            why,
            "let the agent record first: `[agent.recording] enabled = true` in its config, then start it again",
        ),
        RecordingError::Newer { .. } => Failure::refused(what, why, "run the latido that wrote it, or a newer one"),
        RecordingError::NoRecording { .. } => {
            Failure::usage(what, why, "name a file that an agent recorded; each begins with a line `{\"began\":…}`")
        }
    }
}

fn not_replayed(error: &ReplayError) -> Failure {
    let why = format!("cannot {}", chain(error));
    Failure::usage("cannot replay the recording", why, "name a file that an agent recorded, as it wrote it")
}
