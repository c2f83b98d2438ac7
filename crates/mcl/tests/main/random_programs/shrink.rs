//! Makes a program smaller for as long as something still holds for it: statements, items and expressions are taken out.

use setpoint_diagnostics::{Diagnostics, SourceMap, Span};
use setpoint_mcl::syntax::{Ast, Block, ExprKind, StmtKind, parse};

/// The files of a program: path and text.
pub(crate) type Files = Vec<(String, String)>;

/// A program as small as is found, for which `holds` is still true.
pub(crate) fn shrink(files: Files, holds: impl Fn(&Files) -> bool) -> Files {
    let mut smallest = files;
    loop {
        let size = total(&smallest);
        for index in (0..smallest.len()).rev() {
            if smallest[index].0 != "main.mcl" {
                let mut fewer = smallest.clone();
                fewer.remove(index);
                if holds(&fewer) {
                    smallest = fewer;
                    continue;
                }
            }
            shrink_file(&mut smallest, index, &holds);
        }
        if total(&smallest) >= size {
            return smallest;
        }
    }
}

fn total(files: &Files) -> usize {
    files.iter().map(|(_, text)| text.len()).sum()
}

fn shrink_file(files: &mut Files, index: usize, holds: &impl Fn(&Files) -> bool) {
    // The largest pieces first; after each success the rest is looked at anew, from where it was.
    let mut from = 0;
    loop {
        let text = files[index].1.clone();
        let mut edits = edits(&text);
        edits.sort_by_key(|(start, end, new)| std::cmp::Reverse((end - start).saturating_sub(new.len())));
        edits.retain(|(start, end, new)| new.len() < end - start);
        let found = edits
            .iter()
            .enumerate()
            .skip(from)
            .find_map(|(number, (start, end, new))| {
                let mut smaller = files.clone();
                smaller[index].1 = format!("{}{new}{}", &text[..*start], &text[*end..]);
                holds(&smaller).then_some((number, smaller))
            });
        match found {
            Some((number, smaller)) => {
                *files = smaller;
                from = number;
            }
            None if from > 0 => from = 0,
            None => return,
        }
    }
}

/// What may be tried on a text: from, to, and what stands there instead.
fn edits(text: &str) -> Vec<(usize, usize, String)> {
    let file = SourceMap::new().add("shrunk", text);
    let ast = parse(file, text, &mut Diagnostics::new()).ast;
    let place = |span: Span| (span.start as usize, span.end as usize);
    let inside = |block: &Block| {
        let (start, end) = place(block.span);
        text.get(start + 1..end.saturating_sub(1))
            .unwrap_or_default()
            .to_owned()
    };
    let mut edits = Vec::new();
    let mut blocks: Vec<&Block> = vec![&ast.root];
    while let Some(block) = blocks.pop() {
        for &id in &block.statements {
            let (start, end) = place(ast[id].span);
            edits.push((start, end, String::new()));
            match &ast[id].kind {
                StmtKind::If(statement) => {
                    for inner in [Some(&statement.then_block), statement.else_block.as_ref()]
                        .into_iter()
                        .flatten()
                    {
                        edits.push((start, end, inside(inner)));
                        blocks.push(inner);
                    }
                    if let Some(block) = &statement.else_block {
                        edits.push((
                            place(statement.then_block.span).1,
                            place(block.span).1,
                            String::new(),
                        ));
                    }
                }
                StmtKind::For(statement) | StmtKind::ForKv(statement) => {
                    edits.push((start, end, inside(&statement.body)));
                    blocks.push(&statement.body);
                }
                StmtKind::Class(class) => blocks.push(&class.body),
                StmtKind::Resource(resource) => {
                    for item in &resource.items {
                        let (start, end) = place(item.span);
                        edits.push((start, end, String::new()));
                    }
                }
                _ => {}
            }
        }
    }
    edits.extend(edits_of_expressions(&ast, text));
    edits
}

fn edits_of_expressions(ast: &Ast, text: &str) -> Vec<(usize, usize, String)> {
    let mut edits = Vec::new();
    let count = u32::try_from(ast.expr_count()).unwrap_or(u32::MAX);
    for expression in (0..count).map(|number| &ast[setpoint_mcl::syntax::ExprId(number)]) {
        let (start, end) = (expression.span.start as usize, expression.span.end as usize);
        let part = |span: Span| {
            text.get(span.start as usize..span.end as usize)
                .unwrap_or_default()
                .to_owned()
        };
        if let ExprKind::List(items) = &expression.kind {
            for skipped in 0..items.len() {
                let rest = items.iter().enumerate().filter(|(index, _)| *index != skipped);
                let rest: Vec<String> = rest.map(|(_, id)| part(ast[*id].span)).collect();
                edits.push((start, end, format!("[{}]", rest.join(", "))));
            }
        }
        expression
            .kind
            .for_each_child(|child| edits.push((start, end, part(ast[child].span))));
        edits.extend(["1", "\"\"", "true", "0.5", "[1]", "[\"\"]"].map(|leaf| (start, end, leaf.to_owned())));
    }
    edits
}
