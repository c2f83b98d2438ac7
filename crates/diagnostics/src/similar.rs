//! «did you mean»: the one place that decides which names are near enough to suggest.

/// The candidate nearest to `name`, if one is near enough to be a slip of the finger.
///
/// ```
/// use setpoint_diagnostics::closest;
/// assert_eq!(closest("contnet", ["content", "source"]), Some("content"));
/// assert_eq!(closest("xyz", ["content", "source"]), None);
/// assert_eq!(closest("x", ["y"]), None);
/// ```
#[must_use]
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Of names of one letter every other is one slip away, which would help nobody.
    let allowed = match name.chars().count() {
        0 | 1 => return None,
        length => (length / 3).max(1),
    };
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The sentence for a diagnostic's help: ``did you mean `content`?``.
#[must_use]
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(name, candidates).map(|found| format!("did you mean `{found}`?"))
}
