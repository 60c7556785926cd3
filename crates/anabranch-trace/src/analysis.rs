//! An analysis: two readings of the captures, and a report.

use crate::analyser::Analyser;
use crate::error::AnalyseError;
use crate::input::{Input, Packets};
use crate::report::{self, Outcome};
use crate::survey::Survey;

/// Read captures, merged by time, and reconstruct the connections in them.
///
/// `progress` is given the bytes read and to be read, and says whether to go on; both readings
/// count.
///
/// # Errors
/// If a file cannot be opened or is no capture, or `progress` says no. A file that is damaged
/// further on is read up to there: see [`Outcome::damages`].
pub fn analyse(
    inputs: &[Input<'_>],
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Outcome, AnalyseError> {
    let bytes: u64 = inputs.iter().map(Input::bytes_len).sum();
    let mut survey = Survey::default();
    let mut packets = Packets::open(inputs)?;
    packets.for_each(|sighting| survey.take(&sighting), |read| progress(read, 2 * bytes))?;
    let (left_out, stripped) = (survey.left_out, survey.stripped());

    let mut analyser = Analyser::new(survey.choose());
    let mut packets = Packets::open(inputs)?;
    packets
        .for_each(|sighting| analyser.take(&sighting), |read| progress(bytes + read, 2 * bytes))?;
    let places = packets.place_names().to_vec();
    let files = inputs.iter().map(|input| input.name().to_owned()).zip(packets.into_reports());
    let mut outcome = report::finish(analyser, files.collect(), &places, left_out);
    if stripped > 0 {
        outcome.notes.push(format!(
            "{stripped} TCP connections carry options of Multipath TCP at one place and none at \
             another: something in between removes them"
        ));
    }
    Ok(outcome)
}
