//! The lives of all agents of a world, recorded as texts and replayed.

use std::sync::{Arc, Mutex, PoisonError};

use latido_driver::recording::{Line, Recorder};
use latido_driver::replay::{AsRecorded, Replay, Signs, decided_then};

/// The lines of each life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives(Arc<Mutex<Vec<Vec<String>>>>);

/// Records one life.
struct Life {
    lives: Lives,
    number: usize,
}

impl Recorder for Life {
    fn note(&mut self, line: &Line) {
        let text = serde_json::to_string(line).unwrap_or_else(|error| error.to_string());
        self.lives.with(|lives| lives[self.number].push(text));
    }

    fn wants_beginning(&self) -> bool {
        false
    }
}

impl Lives {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<Vec<String>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A recorder for one more life.
    pub(crate) fn begin(&self) -> Box<dyn Recorder> {
        let number = self.with(|lives| {
            lives.push(Vec::new());
            lives.len() - 1
        });
        Box::new(Life { lives: self.clone(), number })
    }

    /// Replays every life. Answers how many decisions were made again as they were.
    pub(crate) fn replay(&self) -> Result<usize, String> {
        let mut count = 0;
        for (number, lines) in self.with(std::mem::take).into_iter().enumerate() {
            count += replay_life(&lines).map_err(|error| format!("life {number}: {error}"))?;
        }
        Ok(count)
    }
}

fn replay_life(lines: &[String]) -> Result<usize, String> {
    let (mut replay, mut signs, mut then) = (Replay::new(AsRecorded), Signs::default(), Vec::new());
    for line in lines {
        let line: Line = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        signs.take(&line);
        if let Line::Step(step) = &line {
            then.extend(decided_then(step, signs.listened()));
        }
        replay.take(&line).map_err(|error| error.to_string())?;
    }
    let again = replay.into_decided();
    match then.iter().zip(&again).find(|(then, again)| then != again) {
        Some((then, again)) => Err(format!("decided then: {then:?}, and again: {again:?}")),
        None if then.len() != again.len() => Err(format!("{} decisions then, {} again", then.len(), again.len())),
        None => Ok(then.len()),
    }
}
