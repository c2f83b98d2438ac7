//! The rules of a project about which relations are frozen before which.

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};

use super::{Resolver, codes};
use crate::ids::{EntityId, RelationId};

impl Resolver<'_> {
    pub(super) fn resolve_precedence(&mut self) {
        let loaded = self.loaded;
        let rules = &loaded.project.precedence;
        if rules.is_empty() {
            return;
        }
        let entities = self.model.entities.iter().enumerate();
        let entities: FxHashMap<String, EntityId> = entities
            .map(|(at, entity)| (entity.name.to_string(), EntityId(at as u32)))
            .collect();
        let mut known: Vec<(RelationId, RelationId, Span)> = Vec::new();
        for rule in rules {
            let pair = match rule.text.split_once(" before ") {
                None => Err("a rule is `ns::Type.relation before ns::Type.relation`".to_owned()),
                Some((before, after)) => self
                    .ruled(&entities, before.trim())
                    .and_then(|before| Ok((before, self.ruled(&entities, after.trim())?))),
            };
            match pair {
                Ok((before, after)) => known.push((before, after, rule.span)),
                Err(reason) => {
                    let message = format!("rule `{}` cannot be followed: {reason}", rule.text);
                    let error = Diagnostic::error(&codes::PRECEDENCE, rule.span, message);
                    self.found
                        .push(error.of_class("InvalidRelationPrecedenceRuleError"));
                }
            }
        }
        if let Some(error) = self.contradiction_of_rules(&known) {
            self.found.push(error);
        }
        self.model.precedence = known
            .into_iter()
            .map(|(before, after, _)| (before, after))
            .collect();
    }

    /// The relation of `ns::Type.relation`, which that very entity declares.
    fn ruled(&self, entities: &FxHashMap<String, EntityId>, text: &str) -> Result<RelationId, String> {
        let Some((entity, relation)) = text.split_once('.') else {
            return Err(format!("`{text}` names no relation"));
        };
        let Some(id) = entities.get(entity) else {
            let mut names: Vec<&str> = entities.keys().map(String::as_str).collect();
            names.sort_unstable();
            let main = format!("{}::{entity}", crate::project::MAIN);
            let near = match entities.contains_key(&main) {
                true => format!(", did you mean `{main}`?"),
                false => did_you_mean(entity, names).map_or(String::new(), |near| format!(", {near}")),
            };
            return Err(format!("there is no entity `{entity}`{near}"));
        };
        let own = &self.own_relations[id.index()];
        let name = |id: &RelationId| &**self.symbols.text(self.model.relations[id.index()].name);
        if let Some(found) = own.iter().find(|id| name(id) == relation) {
            return Ok(*found);
        }
        let members = self.entity(*id).members.iter();
        let has_other = members
            .map(|member| self.symbols.text(member.name))
            .any(|text| &**text == relation);
        Err(if has_other {
            format!("`{relation}` is no relation that `{entity}` declares itself")
        } else {
            let near = did_you_mean(relation, own.iter().map(name))
                .map_or(String::new(), |near| format!(", {near}"));
            format!("`{entity}` has no relation `{relation}`{near}")
        })
    }

    /// Rules that lead back to where they begin.
    fn contradiction_of_rules(&self, rules: &[(RelationId, RelationId, Span)]) -> Option<Diagnostic> {
        let mut open: Vec<&(RelationId, RelationId, Span)> = rules.iter().collect();
        // What comes after nothing that is open cannot be in a cycle.
        loop {
            let after: FxHashSet<RelationId> = open.iter().map(|(_, after, _)| *after).collect();
            let before = open.len();
            open.retain(|(first, _, _)| after.contains(first));
            if open.len() == before {
                break;
            }
        }
        let mut way: Vec<&(RelationId, RelationId, Span)> = Vec::new();
        let mut at = open.first().map(|(_, after, _)| *after)?;
        // Backwards there is always a rule that leads here, so this comes back to where it was.
        let from = loop {
            let rule = open.iter().find(|(_, after, _)| *after == at)?;
            if let Some(from) = way.iter().position(|known| std::ptr::eq(*known, *rule)) {
                break from;
            }
            way.push(rule);
            at = rule.0;
        };
        let name = |id: RelationId| {
            let relation = &self.model.relations[id.index()];
            format!(
                "{}.{}",
                self.entity(relation.owner).name,
                self.symbols.text(relation.name)
            )
        };
        let mut names: Vec<String> = way[from..]
            .iter()
            .rev()
            .map(|(first, _, _)| name(*first))
            .collect();
        names.push(names.first().cloned()?);
        let message = format!("rules contradict each other: {}", names.join(" before "));
        let error = Diagnostic::error(&codes::PRECEDENCE, way[from].2, message);
        let error = error.of_class("CycleInRelationPrecedencePolicyError");
        let others = way[from + 1..].iter();
        Some(others.fold(error, |error, (_, _, span)| error.because(*span, "and this")))
    }
}
