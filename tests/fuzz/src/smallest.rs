//! Makes an input smaller that shows a fault.

/// Trials in all: enough for some thousand bytes, and an end where each takes long.
const TRIALS_MAX: u32 = 20_000;

/// Leaves out pieces, large ones first, for as long as the fault still shows.
pub(crate) fn smallest(mut input: Vec<u8>, shows: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut trials = 0;
    let mut length = input.len();
    while length > 0 && trials < TRIALS_MAX {
        let mut from = 0;
        let mut shrank = false;
        while from < input.len() && trials < TRIALS_MAX {
            let mut smaller = input.clone();
            smaller.drain(from..(from + length).min(input.len()));
            trials += 1;
            if shows(&smaller) {
                input = smaller;
                shrank = true;
            } else {
                from += length;
            }
        }
        if !shrank || length > 1 {
            length /= 2;
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_belong_to_the_fault_is_left_out() {
        let input = b"a long text with a ( and much later a ) in it".repeat(20);
        let shows = |input: &[u8]| input.contains(&b'(') && input.ends_with(b"t");
        assert_eq!(smallest(input, shows), b"(t");
    }
}
