//! Packet scripts, for Python.

use anabranch_config::named;
use anabranch_proto::platform::PlatformConfig;
use anabranch_script::{EngineStack, Played, Script, ScriptFailure, ScriptSettings, play};
#[cfg(not(target_os = "linux"))]
use pyo3::exceptions::PyOSError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pyo3::import_exception!(anabranch.errors, ScriptError);

/// Play the packet script `text` against the engine in virtual time, or with `live` against this
/// host's kernel. `file` is the script's name in messages. `platform`, the name of a host, overrides
/// the script's setting.
///
/// Returns a dictionary. `verdict` is "ok", "failed", "differs" (a known difference of Linux) or
/// "skipped", and `reason` explains it. `shows` is the script's first comment. `report` and `failure`
/// describe a failure. `log` has every segment and call in script notation.
#[pyfunction]
#[pyo3(signature = (text, file, platform=None, live=false))]
fn conform<'py>(
    py: Python<'py>,
    text: &str,
    file: &str,
    platform: Option<&str>,
    live: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let parsed = Script::parse(text, file);
    let mut script = parsed.map_err(|error| ScriptError::new_err(error.to_string()))?;
    if let Some(name) = platform {
        let platform = named::<PlatformConfig>(name);
        let platform = platform.map_err(|problem| PyValueError::new_err(problem.text))?;
        script.settings.platform = platform.part().build();
    }
    let settings = script.settings.clone();
    if live && settings.skip_live.is_some() {
        return dictionary(py, &script, "skipped", settings.skip_live.as_deref(), None);
    }
    let played = py.detach(|| if live { play_live(&script) } else { Ok(play_engine(&script)) })?;
    let (verdict, reason) = match (&played.failure, &settings) {
        (None, _) => ("ok", None),
        (Some(_), ScriptSettings { differs_live: Some(reason), .. }) if live => {
            ("differs", Some(reason.as_str()))
        }
        (Some(failure), _) => ("failed", Some(failure.what.as_str())),
    };
    dictionary(py, &script, verdict, reason, Some(&played))
}

fn play_engine(script: &Script) -> Played {
    play(script, &mut EngineStack::new(&script.settings))
}

#[cfg(target_os = "linux")]
fn play_live(script: &Script) -> PyResult<Played> {
    let mut stack = anabranch_live::KernelStack::new(&script.settings)?;
    Ok(play(script, &mut stack))
}

#[cfg(not(target_os = "linux"))]
fn play_live(_script: &Script) -> PyResult<Played> {
    Err(PyOSError::new_err("live runs need Linux"))
}

fn dictionary<'py>(
    py: Python<'py>,
    script: &Script,
    verdict: &str,
    reason: Option<&str>,
    played: Option<&Played>,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let failure = played.and_then(|played| played.failure.as_ref());
    result.set_item("file", &script.file)?;
    result.set_item("shows", &script.shows)?;
    result.set_item("verdict", verdict)?;
    result.set_item("reason", reason)?;
    result.set_item("report", failure.map(ToString::to_string))?;
    result.set_item("failure", failure.map(|failure| details(py, failure)).transpose()?)?;
    result.set_item("log", played.map(|played| played.log.clone()).unwrap_or_default())?;
    Ok(result)
}

fn details<'py>(py: Python<'py>, failure: &ScriptFailure) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("line", failure.line)?;
    result.set_item("what", &failure.what)?;
    result.set_item("expected", &failure.expected)?;
    result.set_item("came", &failure.came)?;
    result.set_item("differences", &failure.differences)?;
    result.set_item("before", &failure.before)?;
    Ok(result)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(conform, module)?)
}
