//! The second step: what typedefs narrow. Their conditions are bodies and come later.

use setpoint_diagnostics::{Diagnostic, Span};

use super::entities::MOST_LEVELS;
use super::names::Definition;
use super::{Resolver, codes};
use crate::ids::TypedefId;
use crate::types::BaseType;

impl Resolver<'_> {
    pub(super) fn resolve_typedefs(&mut self) {
        for at in 0..self.typedefs.len() {
            let typedef = self.typedefs[at];
            let namespace = self.model.typedefs[at].namespace;
            if let Some(base) = self.find_base(namespace, &typedef.base) {
                self.model.typedefs[at].base = base;
            }
        }
        self.refuse_typedef_cycles();
    }

    /// The type of a name that stands where a type of values must stand.
    pub(super) fn find_base(
        &mut self,
        namespace: crate::ids::NamespaceId,
        path: &setpoint_cf_syntax::ast::Path,
    ) -> Option<BaseType> {
        match self.find(namespace, path) {
            Ok(Definition::Primitive(base)) => {
                if base == BaseType::Number {
                    self.warn_of_number(path.span);
                }
                Some(base)
            }
            Ok(Definition::Typedef(id)) => Some(BaseType::Typedef(id)),
            Ok(other) => {
                self.wrong_sort(path, &other, "a type of values");
                None
            }
            Err(error) => {
                self.found.push(*error);
                None
            }
        }
    }

    fn warn_of_number(&mut self, place: Span) {
        let message = "type `number` is deprecated";
        let warning = Diagnostic::warning(&codes::NUMBER_TYPE, place, message);
        let warning = warning.of_class("TypeDeprecationWarning");
        self.found.push(warning.help("write `int` or `float`"));
    }

    /// A typedef that narrows itself, over however many others, has no values.
    fn refuse_typedef_cycles(&mut self) {
        /// How far a typedef has been looked at.
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            Not,
            On(u32),
            Done,
        }
        let mut seen = vec![Seen::Not; self.model.typedefs.len()];
        let mut depths: Vec<usize> = vec![0; seen.len()];
        for start in 0..seen.len() {
            let mut way: Vec<usize> = Vec::new();
            let mut at = start;
            let mut depth = 0;
            let cycle = loop {
                match seen[at] {
                    Seen::Done => {
                        depth = depths[at] + 1;
                        break None;
                    }
                    Seen::On(depth) => break Some(depth as usize),
                    Seen::Not => {}
                }
                seen[at] = Seen::On(way.len() as u32);
                way.push(at);
                match self.model.typedefs[at].base {
                    BaseType::Typedef(TypedefId(next)) => at = next as usize,
                    _ => break None,
                }
            };
            if let Some(from) = cycle {
                let names: Vec<&str> = way[from..]
                    .iter()
                    .map(|at| &*self.model.typedefs[*at].name)
                    .collect();
                let message = format!(
                    "typedef `{}` narrows itself: {} → {}",
                    names[0],
                    names.join(" → "),
                    names[0]
                );
                let typedef = self.typedefs[way[from]];
                let error = Diagnostic::error(&codes::CYCLE, typedef.name.span, message);
                self.found.push(error.of_class("CycleException"));
                // Whoever goes on behind the error walks over bases.
                self.model.typedefs[way[from]].base = BaseType::String;
            }
            for done in way.into_iter().rev() {
                seen[done] = Seen::Done;
                depths[done] = depth;
                if depth == MOST_LEVELS + 1 {
                    let tree = self.typedefs[done];
                    let message = format!(
                        "`{}` has more than {MOST_LEVELS} typedefs above it",
                        tree.name.text
                    );
                    let error = Diagnostic::error(&codes::TOO_DEEP, tree.name.span, message);
                    self.found.push(error.of_class("TypingException"));
                    self.model.typedefs[done].base = BaseType::String;
                }
                depth += 1;
            }
        }
    }
}
