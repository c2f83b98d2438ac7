//! The order in which definitions are typed: what one needs comes before it, so that no chain of them is deep.

use rustc_hash::FxHashMap;

use super::InstanceId;
use super::infer::Inference;
use super::places::Segment;
use super::schemes::FunctionTyping;
use crate::hir::{Callee, DefinitionId, DefinitionKind, ExprId, ExprKind, FunctionId, Owner};
use crate::scope::depends_on_itself;

/// What is typed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// A definition, in the instance that it belongs to.
    Definition(InstanceId, DefinitionId),
    /// A named function, in the instance that defines it.
    Function(InstanceId, FunctionId),
}

impl Inference<'_> {
    /// Types all that a node needs and that has no type yet. Their equations stand where they are used.
    pub(super) fn type_needs(&mut self, of: Node) {
        let mut open = vec![(of, false)];
        while let Some((node, seen)) = open.pop() {
            if self.is_typed(node) {
                continue;
            }
            if seen {
                // Whoever asks for it types it, and says when that is done.
                if node != of {
                    self.type_ahead(node);
                    self.in_progress.remove(&node);
                }
                continue;
            }
            if !self.in_progress.insert(node) {
                self.circle(node);
                continue;
            }
            open.push((node, true));
            if let Some((instance, expr)) = self.body_of(node) {
                self.needs(instance, expr, &mut |node| open.push((node, false)));
            }
        }
    }

    fn is_typed(&self, node: Node) -> bool {
        match node {
            Node::Definition(holder, id) => self.typed.instance(holder).definitions.contains_key(&id),
            Node::Function(parent, id) => self.functions.contains_key(&(parent, id)),
        }
    }

    fn type_ahead(&mut self, node: Node) {
        let outer = self.places.open();
        match node {
            Node::Definition(holder, id) => {
                self.new_definition_type(holder, id);
            }
            Node::Function(parent, id) => self.new_function(parent, id),
        }
        if let Some(segment) = self.places.close(outer) {
            self.ahead.insert(node, segment);
        }
    }

    /// A use of what may have been typed ahead: the first one is where its equations stand.
    pub(super) fn used(&mut self, node: Node) {
        if self.ahead.is_empty() {
            return;
        }
        let segment: Option<Segment> = self.ahead.remove(&node);
        if let Some(segment) = segment {
            self.places.put(segment);
        }
    }

    /// The expression that gives a node its type, and the instance that it is in.
    fn body_of(&mut self, node: Node) -> Option<(InstanceId, ExprId)> {
        match node {
            Node::Definition(holder, id) => self.value_of(holder, id),
            Node::Function(parent, id) => Some((parent, self.hir.function(id).body)),
        }
    }

    /// What an expression mentions, from left to right when it is taken from the end.
    fn needs(&mut self, instance: InstanceId, expr: ExprId, visit: &mut dyn FnMut(Node)) {
        let hir = self.hir;
        hir.for_each_part(expr, |part| match &hir.expr(part).kind {
            ExprKind::Variable { path, definition } => {
                let owner = hir.definition(*definition).owner;
                let is_entered = matches!(
                    hir.definition(*definition).kind,
                    DefinitionKind::Parameter { .. }
                        | DefinitionKind::LoopKey
                        | DefinitionKind::LoopValue
                        | DefinitionKind::Library(_)
                );
                // Parameters and loop variables get their types with their body.
                if !is_entered {
                    visit(Node::Definition(self.follow(instance, path, owner), *definition));
                }
            }
            ExprKind::Call {
                callee: Callee::Function { path, function },
                ..
            } => {
                let owner = hir.function(*function).owner;
                visit(Node::Function(self.follow(instance, path, owner), *function));
            }
            _ => {}
        });
    }

    /// Resolution refuses whatever needs itself. If it ever lets something pass, it is refused here and not typed without end.
    fn circle(&mut self, node: Node) {
        let (what, at) = match node {
            Node::Definition(holder, id) => {
                let definition = self.hir.definition(id);
                let ty = self.solver.fresh();
                let definitions = &mut self.typed.instances[holder.0 as usize].definitions;
                definitions.insert(id, ty);
                (format!("`${}`", definition.name), definition.span)
            }
            Node::Function(parent, id) => {
                self.functions.insert((parent, id), FunctionTyping::Refused);
                let function = self.hir.function(id);
                let name = function.name.as_deref().unwrap_or("this one");
                (format!("the function `{name}`"), function.span)
            }
        };
        self.refuse(depends_on_itself(&what, at));
    }

    /// What the text alone says of a definition, kept in `table`; of those that it needs first.
    pub(super) fn fact<T: Clone>(
        &mut self,
        of: (InstanceId, DefinitionId),
        table: impl Fn(&mut Self) -> &mut FxHashMap<(InstanceId, DefinitionId), Option<T>>,
        find: impl Fn(&mut Self, InstanceId, DefinitionId) -> Option<T>,
    ) -> Option<T> {
        let mut open = vec![(of, false)];
        while let Some(((holder, id), seen)) = open.pop() {
            if seen {
                let found = find(self, holder, id);
                table(self).insert((holder, id), found);
                continue;
            }
            if table(self).contains_key(&(holder, id)) {
                continue;
            }
            // Nothing, until it is found: what needs itself ends here.
            table(self).insert((holder, id), None);
            open.push(((holder, id), true));
            if let Some((instance, expr)) = self.body_of(Node::Definition(holder, id)) {
                self.needs(instance, expr, &mut |node| {
                    if let Node::Definition(holder, id) = node {
                        open.push(((holder, id), false));
                    }
                });
            }
        }
        table(self).get(&of).cloned().flatten()
    }

    /// The instance that a function of the program is defined in, as seen from a call.
    pub(super) fn definer(
        &mut self,
        instance: InstanceId,
        path: &[crate::hir::IncludeId],
        id: FunctionId,
    ) -> InstanceId {
        let owner: Owner = self.hir.function(id).owner;
        self.follow(instance, path, owner)
    }
}
