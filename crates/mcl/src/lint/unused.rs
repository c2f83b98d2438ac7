//! Rules about names: those that nothing uses, and those that hide others.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};

use super::{Linter, blocks, codes, is_for_others, text_at, with_dollar};
use crate::analysis::{Analysis, Target, Unused};
use crate::hir::DefinitionKind;
use crate::syntax::{Ast, StmtId, StmtKind};

/// Where a statement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At the top of a file, or in the body of a class: others may use what it defines.
    Open,
    /// In the body of a class that only this program includes.
    Class,
    /// In a branch or a loop.
    Block,
    /// At the top of the program.
    Top,
}

/// Where each statement of a program's texts stands.
pub(super) type Places = FxHashMap<Span, Place>;

/// Looks where each statement stands.
pub(super) fn places(analysis: &Analysis) -> Places {
    let mut places = Places::default();
    for (at, (_, parsed)) in analysis.files().enumerate() {
        let ast = &*parsed.ast;
        let others = at > 0 || is_for_others(ast);
        // A class is met before the blocks in it.
        let mut open: FxHashMap<StmtId, bool> = FxHashMap::default();
        places.reserve(ast.stmt_count());
        for (owner, block) in blocks(ast) {
            let place = match owner {
                None if others => Place::Open,
                None => Place::Top,
                Some(owner) => match ast.stmt(owner).kind {
                    StmtKind::Class(_) if open.get(&owner) == Some(&true) => Place::Open,
                    StmtKind::Class(_) => Place::Class,
                    _ => Place::Block,
                },
            };
            for id in &block.statements {
                open.insert(*id, place == Place::Open);
                places.insert(ast.stmt(*id).span, place);
            }
        }
    }
    places
}

impl Linter<'_> {
    /// What is defined and never used. What others may import counts as used.
    pub(super) fn unused(&mut self, places: &Places) {
        for unused in self.analysis.unused() {
            let place = places.get(&unused.statement).copied();
            if let Some(warning) = self.unused_name(&unused, place) {
                self.warn(warning);
            }
        }
    }

    fn unused_name(&self, unused: &Unused, place: Option<Place>) -> Option<Diagnostic> {
        let text = text_at(self.analysis, unused.name);
        let is_open = place == Some(Place::Open);
        match &unused.target {
            Target::Variable(id) => match &self.analysis.hir.definition(*id).kind {
                DefinitionKind::Bind { .. } if !is_open => {
                    let message = format!("nothing uses the variable `${text}`");
                    Some(
                        Diagnostic::warning(&codes::UNUSED_VARIABLE, with_dollar(unused.name), message)
                            .help("take it away, or use it"),
                    )
                }
                DefinitionKind::ClassParameter { .. } => {
                    let message = format!("nothing in the class uses its parameter `${text}`");
                    Some(Diagnostic::warning(
                        &codes::UNUSED_PARAMETER,
                        unused.name,
                        message,
                    ))
                }
                DefinitionKind::Parameter { function, .. } => {
                    // What a lambda is given is decided by who calls it.
                    let function = self.analysis.hir.function(*function).name.clone()?;
                    let message = format!("the function `{function}` does not use its parameter `${text}`");
                    Some(Diagnostic::warning(
                        &codes::UNUSED_PARAMETER,
                        unused.name,
                        message,
                    ))
                }
                DefinitionKind::Bind { .. }
                | DefinitionKind::LoopKey
                | DefinitionKind::LoopValue
                | DefinitionKind::Library(_) => None,
            },
            Target::Function(_) if !is_open => {
                let message = format!("nothing calls the function `{text}`");
                Some(Diagnostic::warning(&codes::UNUSED_FUNCTION, unused.name, message))
            }
            // Of one inside of another it is said whether that is there.
            Target::Class(_) if !is_open && !text.contains(':') => {
                let message = format!("nothing includes the class `{text}`");
                let warning = Diagnostic::warning(&codes::UNUSED_CLASS, unused.name, message);
                Some(warning.help("what is in it is not part of the program"))
            }
            Target::Alias(id) if !is_open => {
                let alias = self.analysis.alias(*id);
                if alias.include.is_some() {
                    return None;
                }
                let message = match &alias.name {
                    Some(name) => format!("nothing uses the import `{name}`"),
                    None => "nothing uses what this imports".to_owned(),
                };
                let statement = alias.statement;
                let warning = Diagnostic::warning(&codes::UNUSED_IMPORT, statement, message);
                Some(match self.line(statement) {
                    Some(line) => warning.fix("take it away", line, ""),
                    None => warning.help("take it away"),
                })
            }
            _ => None,
        }
    }

    /// The whole line of a statement, if nothing else stands there.
    fn line(&self, statement: Span) -> Option<Span> {
        let text = &*self.analysis.sources.file(statement.file).text;
        let start = text[..statement.start as usize]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let end = text[statement.end as usize..]
            .find('\n')
            .map_or(text.len(), |at| statement.end as usize + at + 1);
        let is_alone = text[start..statement.start as usize].trim().is_empty()
            && text[statement.end as usize..end].trim().is_empty();
        is_alone.then(|| Span::new(statement.file, start as u32, end as u32))
    }

    /// Variables of branches and loops that hide one outside: who expects the outer one to change is wrong.
    pub(super) fn shadowing(&mut self, places: &Places) {
        let analysis = self.analysis;
        let shadowing = analysis.shadowing();
        if shadowing.is_empty() {
            return;
        }
        let mut binds: FxHashMap<Span, Place> = FxHashMap::default();
        for (_, parsed) in analysis.files() {
            for id in (0..parsed.ast.stmt_count() as u32).map(StmtId) {
                let statement = parsed.ast.stmt(id);
                if let (StmtKind::Bind(bind), Some(place)) = (&statement.kind, places.get(&statement.span)) {
                    binds.insert(bind.name.span, *place);
                }
            }
        }
        for hidden in shadowing {
            if binds.get(&hidden.inner) != Some(&Place::Block) {
                continue;
            }
            // What a loop or a class gives may be given another form under its name.
            if !binds.contains_key(&hidden.outer) {
                continue;
            }
            let name = text_at(analysis, hidden.inner);
            let message = format!("`${name}` is another variable here, and the outer one stays as it is");
            let warning = Diagnostic::warning(&codes::SHADOWED_VARIABLE, with_dollar(hidden.inner), message);
            let warning = warning.because(with_dollar(hidden.outer), "the outer one");
            self.warn(warning.help(format!(
                "to give `${name}` one of two values, write `${name} = if … {{ … }} else {{ … }}` outside; else choose another name"
            )));
        }
    }

    /// Classes of the form `a:b` where there is no class `a`: nobody can include them by that name.
    pub(super) fn classes(&mut self, ast: &Ast) {
        for (_, block) in blocks(ast) {
            let names: Vec<(&str, Span)> = block
                .statements
                .iter()
                .filter_map(|id| match &ast.stmt(*id).kind {
                    StmtKind::Class(class) => Some((&*class.name.text, class.name.span)),
                    _ => None,
                })
                .collect();
            for (name, span) in &names {
                let Some((parent, inner)) = name.rsplit_once(':') else {
                    continue;
                };
                if names.iter().any(|(other, _)| *other == parent) {
                    continue;
                }
                let message =
                    format!("there is no class `{parent}` beside it, so nothing can include `{inner}`");
                let others = names
                    .iter()
                    .map(|(other, _)| *other)
                    .filter(|other| other != name);
                let help = did_you_mean(parent, others);
                let warning = Diagnostic::warning(&codes::CLASS_WITHOUT_PARENT, *span, message);
                self.warn(warning.help_if(help));
            }
        }
    }
}
