//! Plans in files.

use std::path::Path;

use setpoint_host::files::{AbsolutePath, Committer, Replace};
use setpoint_host::ssh::{Signers, sign};
use setpoint_plan::{Plan, Saved, read, signature_line};
use setpoint_programs::failure::Failure;

/// A plan as one line of JSON.
///
/// # Errors
/// Never, as a plan has texts for keys.
pub(in crate::commands) fn text(plan: &Plan) -> Result<String, Failure> {
    let text = serde_json::to_string(plan)
        .map_err(|error| Failure::wrong(format!("cannot write the plan as JSON: {error}")))?;
    Ok(format!("{text}\n"))
}

/// The namespace of signatures of plans.
const NAMESPACE: &str = "setpoint-plan";

/// Saves a plan, for its owner alone, signed with the private key in a file.
///
/// # Errors
/// When it cannot be signed, or the file cannot be written.
pub(in crate::commands) fn write(plan: &Plan, file: &Path, key: Option<&Path>) -> Result<(), Failure> {
    let mut text = text(plan)?;
    if let Some(key) = key {
        let signature = sign(key, NAMESPACE, text.as_bytes())
            .map_err(|why| Failure::wrong(format!("cannot sign the plan: {why}")))?;
        text += &signature_line(&signature);
    }
    let attempted = format!("cannot save the plan in {}", file.display());
    let path =
        std::path::absolute(file).map_err(|error| Failure::io("find the current directory", &error))?;
    let path = AbsolutePath::new(path).map_err(|error| Failure::wrong(attempted.clone()).because(error))?;
    let request = Replace::bytes(path, text.into_bytes()).mode(0o600);
    let committed = Committer::new().replace(request);
    committed
        .map(|_| ())
        .map_err(|error| Failure::wrong(attempted).because(error))
}

/// Checks the signature of a plan against the keys in a file of signers.
///
/// # Errors
/// When the file of signers cannot be used, or none of them has signed the plan.
pub(in crate::commands) fn verify(saved: &Saved, signers: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::wrong(format!("the plan is not applied: {why}"));
    let known = Signers::read(signers, NAMESPACE).map_err(failed)?;
    let signature = saved.signature.as_ref().ok_or_else(|| {
        failed("it is not signed".to_owned()).hint("`setpoint plan --out FILE --sign KEY` signs a plan")
    })?;
    let verified = known.verify(NAMESPACE, saved.signed.as_bytes(), signature);
    verified.map(|_| ()).map_err(|error| failed(error.to_string()))
}

/// The plan in a file; none if the file is no plan at all, but a program perhaps.
///
/// # Errors
/// When it is one that cannot be used.
pub(in crate::commands) fn read_if_plan(argument: &str) -> Result<Option<Saved>, Failure> {
    const BEGINNING: &[u8] = b"{\"format\":\"setpoint-plan\"";
    let path = Path::new(argument);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(|error| Failure::io(format!("read {argument}"), &error))?;
    if !bytes.starts_with(BEGINNING) {
        return Ok(None);
    }
    let wrong = |why: String| Failure::wrong(format!("cannot use the plan {argument}: {why}"));
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    read(&text).map(Some).map_err(wrong)
}
