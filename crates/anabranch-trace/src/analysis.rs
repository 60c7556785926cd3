//! An analysis: two passes over the captures, and a report.

use crate::analyser::Analyser;
use crate::error::AnalyseError;
use crate::input::{Input, Packets};
use crate::report::{self, Analysis};
use crate::survey::Survey;

/// Read captures, merge them by time, and reconstruct their connections.
///
/// `progress` receives the bytes read so far and the total over both passes. It returns whether to
/// continue.
///
/// # Errors
/// If a file cannot be opened or is not a capture, or if `progress` returns `false`. A damaged file is
/// read up to the damage: see [`Analysis::damages`].
pub fn analyse(
    inputs: &[Input<'_>],
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Analysis, AnalyseError> {
    let bytes: u64 = inputs.iter().map(Input::bytes_len).sum();
    let mut survey = Survey::default();
    let mut packets = Packets::open(inputs)?;
    packets.for_each(|sighting| survey.handle(&sighting), |read| progress(read, 2 * bytes))?;
    let (left_out, stripped) = (survey.left_out, survey.stripped());

    let mut analyser = Analyser::new(survey.choose());
    let mut packets = Packets::open(inputs)?;
    packets.for_each(
        |sighting| analyser.handle(&sighting),
        |read| progress(bytes + read, 2 * bytes),
    )?;
    let places = packets.place_names().to_vec();
    let files = inputs.iter().map(|input| input.name().to_owned()).zip(packets.into_reports());
    let mut outcome = report::finish(analyser, files.collect(), &places, left_out);
    if stripped > 0 {
        outcome.notes.push(format!(
            "{stripped} TCP connections carry Multipath TCP options at one place and none at \
             another: a middlebox removes them"
        ));
    }
    Ok(outcome)
}
