//! What a client can ask: what the server is capable of, and where each method is answered.

mod actions;
mod completion;
mod diagnostics;
mod formatting;
mod hints;
mod hover;
mod model;
mod navigation;
mod outline;
mod rename;
mod signature;
mod structure;
mod tokens;

use std::cell::RefCell;

use lsp_types::{InitializeParams, Location, Position, Range, TextDocumentPositionParams};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use setpoint_cf::analysis::Analysis as ModelAnalysis;
use setpoint_diagnostics::{FileId, Span};
use setpoint_flow::Stop;
use setpoint_mcl::analysis::Analysis as MclAnalysis;

use crate::documents::Snapshot;
use crate::language::Analysed;
use crate::positions::{Encoding, Text};
use crate::programs::{Analysis, Program, Programs};
use crate::setup::Setup;
use crate::uri;

pub(crate) use diagnostics::{Published, publish};
pub(crate) use tokens::ToldTokens;

/// What the client can do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    pub(crate) encoding: Encoding,
    pub(crate) watches_files: bool,
    pub(crate) snippets: bool,
    pub(crate) nested_symbols: bool,
    pub(crate) related_information: bool,
    /// Whether it takes changes of tokens.
    pub(crate) token_changes: bool,
    /// The directories that are open in the client.
    pub(crate) folders: Vec<String>,
}

impl Client {
    #[expect(deprecated, reason = "older clients name one directory in the older field")]
    pub(crate) fn of(params: &InitializeParams) -> Client {
        let capabilities = serde_json::to_value(&params.capabilities).unwrap_or_default();
        let is = |pointer: &str| capabilities.pointer(pointer).and_then(Json::as_bool) == Some(true);
        let encodings = capabilities
            .pointer("/general/positionEncodings")
            .and_then(Json::as_array);
        let encoding = match encodings.is_some_and(|known| known.iter().any(|encoding| encoding == "utf-8")) {
            true => Encoding::Utf8,
            false => Encoding::Utf16,
        };
        let mut folders: Vec<String> = Vec::new();
        for folder in params.workspace_folders.iter().flatten() {
            folders.push(uri::path(&folder.uri));
        }
        if folders.is_empty() {
            folders.extend(params.root_uri.as_ref().map(uri::path));
        }
        Client {
            encoding,
            watches_files: is("/workspace/didChangeWatchedFiles/dynamicRegistration"),
            snippets: is("/textDocument/completion/completionItem/snippetSupport"),
            nested_symbols: is("/textDocument/documentSymbol/hierarchicalDocumentSymbolSupport"),
            related_information: is("/textDocument/publishDiagnostics/relatedInformation"),
            token_changes: is("/textDocument/semanticTokens/requests/full/delta"),
            folders,
        }
    }
}

/// What the client is told that the server can do.
pub(crate) fn capabilities(client: &Client) -> Json {
    let encoding = match client.encoding {
        Encoding::Utf8 => "utf-8",
        Encoding::Utf16 => "utf-16",
    };
    json!({
        "positionEncoding": encoding,
        "textDocumentSync": { "openClose": true, "change": 2, "save": { "includeText": false } },
        "hoverProvider": true,
        "completionProvider": { "triggerCharacters": ["$", ".", ":", ">", "\"", "/", "{"] },
        "signatureHelpProvider": { "triggerCharacters": ["(", ","], "retriggerCharacters": [")"] },
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "documentSymbolProvider": true,
        "workspaceSymbolProvider": true,
        "codeActionProvider": { "codeActionKinds": ["quickfix", actions::FIX_ALL] },
        "documentFormattingProvider": true,
        "documentRangeFormattingProvider": true,
        "renameProvider": { "prepareProvider": true },
        "foldingRangeProvider": true,
        "selectionRangeProvider": true,
        "inlayHintProvider": true,
        "semanticTokensProvider": {
            "legend": { "tokenTypes": tokens::TYPES, "tokenModifiers": tokens::MODIFIERS },
            "full": { "delta": true },
            "range": true,
        },
    })
}

/// What an answer is made from.
pub(crate) struct Context<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) client: &'a Client,
    pub(crate) programs: &'a mut Programs,
    pub(crate) told_tokens: &'a mut ToldTokens,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) stop: &'a Stop,
}

/// What is answered.
pub(crate) enum Answer {
    Result(Json),
    /// The same, in writing.
    Written(Box<RawValue>),
    /// It cannot be done; why, for people.
    Refusal(String),
    /// The parameters make no sense.
    Invalid(String),
    UnknownMethod,
    /// Nobody wants to know any more.
    Stopped,
}

impl From<Json> for Answer {
    fn from(result: Json) -> Answer {
        Answer::Result(result)
    }
}

impl From<Box<RawValue>> for Answer {
    fn from(result: Box<RawValue>) -> Answer {
        Answer::Written(result)
    }
}

/// Answers a request.
pub(crate) fn answer(context: &mut Context<'_>, method: &str, params: Json) -> Answer {
    match method {
        "textDocument/hover" => at_place(context, &params, |place| match place {
            Here::Mcl(place) => Ok(hover::hover(place)),
            Here::Model(place) => Ok(model::hover(place)),
        }),
        "textDocument/completion" => at_place(context, &params, |place| match place {
            Here::Mcl(place) => Ok(completion::completion(place)),
            Here::Model(place) => Ok(model::completion(place)),
        }),
        "textDocument/signatureHelp" => at_place(context, &params, |place| match place {
            Here::Mcl(place) => Ok(signature::help(place)),
            Here::Model(place) => Ok(model::help(place)),
        }),
        "textDocument/definition" => at_place(context, &params, |place| match place {
            Here::Mcl(place) => Ok(navigation::definition(place)),
            Here::Model(place) => Ok(navigation::definition(place)),
        }),
        "textDocument/documentHighlight" => at_place(context, &params, |place| match place {
            Here::Mcl(place) => Ok(navigation::highlights(place)),
            Here::Model(place) => Ok(navigation::highlights(place)),
        }),
        "textDocument/references" => {
            let declaration = params.pointer("/context/includeDeclaration") != Some(&Json::Bool(false));
            at_place(context, &params, |place| match place {
                Here::Mcl(place) => Ok(navigation::references(place, declaration)),
                Here::Model(place) => Ok(navigation::references(place, declaration)),
            })
        }
        "textDocument/prepareRename" => at_place(context, &params, |place| match place {
            Here::Mcl(place) => rename::prepare(place),
            Here::Model(place) => model::prepare(place),
        }),
        "textDocument/rename" => {
            let name = params
                .get("newName")
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned();
            at_place(context, &params, |place| match place {
                Here::Mcl(place) => rename::rename(place, &name),
                Here::Model(place) => model::rename(place, &name),
            })
        }
        "textDocument/documentSymbol" => in_document(context, &params, |place| match place {
            Here::Mcl(place) => outline::document(place),
            Here::Model(place) => outline::document(place),
        }),
        "textDocument/foldingRange" => in_document(context, &params, |place| match place {
            Here::Mcl(place) => structure::folding(place),
            Here::Model(place) => model::folding(place),
        }),
        "textDocument/semanticTokens/full" => tokens::whole(context, &params, None),
        "textDocument/semanticTokens/full/delta" => {
            let since = params.get("previousResultId").and_then(Json::as_str);
            tokens::whole(context, &params, since)
        }
        "textDocument/semanticTokens/range" => in_range(context, &params, tokens::of_part),
        "textDocument/inlayHint" => in_range(context, &params, |place, range| match place {
            Here::Mcl(place) => hints::hints(place, range),
            // Models have few types that are not written.
            Here::Model(_) => None,
        }),
        "textDocument/codeAction" => {
            let only = actions::wanted(&params);
            in_range(context, &params, |place, range| match place {
                Here::Mcl(place) => actions::actions(place, range, only.as_deref()),
                Here::Model(place) => actions::actions(place, range, only.as_deref()),
            })
        }
        "textDocument/selectionRange" => match read::<lsp_types::SelectionRangeParams>(params.clone()) {
            Ok(wanted) => in_document(context, &params, |place| match place {
                Here::Mcl(place) => structure::selections(place, &wanted.positions),
                Here::Model(place) => model::selections(place, &wanted.positions),
            }),
            Err(answer) => answer,
        },
        "textDocument/formatting" | "textDocument/rangeFormatting" => formatting::answer(context, &params),
        "workspace/symbol" => outline::workspace(context, &params),
        "setpoint/text" => text(context, &params),
        _ => Answer::UnknownMethod,
    }
}

/// A place in a document of a program.
pub(crate) struct Place<'a, A = MclAnalysis> {
    pub(crate) setup: &'a Setup,
    pub(crate) client: &'a Client,
    pub(crate) program: &'a Program,
    pub(crate) analysis: &'a A,
    pub(crate) file: FileId,
    pub(crate) text: Text,
    pub(crate) offset: u32,
    /// Lines of other texts, as far as somebody asked for them.
    lines: RefCell<FxHashMap<FileId, Text>>,
}

/// A place in a document of one of the languages.
pub(crate) enum Here<'a> {
    Mcl(Place<'a>),
    Model(Place<'a, ModelAnalysis>),
}

impl<'a> Here<'a> {
    /// The place in a document that parameters of a request name; none where the document is not there.
    fn of(
        context: &'a mut Context<'_>,
        params: &Json,
        position: Option<Position>,
    ) -> Result<Option<Here<'a>>, Answer> {
        let Some(path) = document_path(params) else {
            return Err(Answer::Invalid("`textDocument.uri` is missing".to_owned()));
        };
        let (setup, client) = (context.setup, context.client);
        let open = context.snapshot.get(&path).map(|document| document.text.clone());
        let program = context.programs.of(&path, context.snapshot, context.stop);
        let program = program.ok_or(Answer::Stopped)?;
        let Some(file) = program.file(&path) else {
            return Ok(None);
        };
        let text = open.unwrap_or_else(|| Text::new(program.sources().file(file).text.clone()));
        let offset = position.map_or(0, |position| text.offset(position, client.encoding));
        Ok(Some(match &program.analysis {
            Analysis::Mcl(analysis) => Here::Mcl(Place {
                setup,
                client,
                program,
                analysis,
                file,
                text,
                offset,
                lines: RefCell::default(),
            }),
            Analysis::Model(analysis) => Here::Model(Place {
                setup,
                client,
                program,
                analysis,
                file,
                text,
                offset,
                lines: RefCell::default(),
            }),
        }))
    }

    fn span(&self, range: Range) -> Span {
        match self {
            Here::Mcl(place) => place.span(range),
            Here::Model(place) => place.span(range),
        }
    }
}

impl<'a> Place<'a> {
    pub(crate) fn analysis(&self) -> &'a MclAnalysis {
        self.analysis
    }
}

impl<A: Analysed> Place<'_, A> {
    /// Where a span of this document is.
    pub(crate) fn range(&self, span: Span) -> Range {
        self.text.range(span.start, span.end, self.client.encoding)
    }

    /// The bytes of a range of this document.
    pub(crate) fn span(&self, range: Range) -> Span {
        let encoding = self.client.encoding;
        let (start, end) = (
            self.text.offset(range.start, encoding),
            self.text.offset(range.end, encoding),
        );
        Span::new(self.file, start, end.max(start))
    }

    pub(crate) fn position(&self, offset: u32) -> Position {
        self.text.position(offset, self.client.encoding)
    }

    /// Where a span of any text of the program is.
    pub(crate) fn location(&self, span: Span) -> Option<Location> {
        let uri = uri::uri(self.program.path(span.file)?)?;
        if span.file == self.file {
            return Some(Location::new(uri, self.range(span)));
        }
        let mut lines = self.lines.borrow_mut();
        let text = lines
            .entry(span.file)
            .or_insert_with(|| Text::new(self.analysis.sources().file(span.file).text.clone()));
        Some(Location::new(
            uri,
            text.range(span.start, span.end, self.client.encoding),
        ))
    }
}

fn document_path(params: &Json) -> Option<String> {
    let address = params.pointer("/textDocument/uri")?.as_str()?;
    Some(uri::path(&address.parse().ok()?))
}

fn read<T: DeserializeOwned>(params: Json) -> Result<T, Answer> {
    serde_json::from_value(params)
        .map_err(|error| Answer::Invalid(format!("the parameters make no sense: {error}")))
}

/// With the place of a document and a position in it.
fn at_place(
    context: &mut Context<'_>,
    params: &Json,
    answer: impl FnOnce(&Here<'_>) -> Result<Option<Json>, Answer>,
) -> Answer {
    let position = match read::<TextDocumentPositionParams>(params.clone()) {
        Ok(read) => read.position,
        Err(answer) => return answer,
    };
    match Here::of(context, params, Some(position)) {
        Ok(Some(place)) => match answer(&place) {
            Ok(result) => Answer::Result(result.unwrap_or_default()),
            Err(answer) => answer,
        },
        Ok(None) => Answer::Result(Json::Null),
        Err(answer) => answer,
    }
}

fn in_document<T: Into<Answer>>(
    context: &mut Context<'_>,
    params: &Json,
    answer: impl FnOnce(&Here<'_>) -> Option<T>,
) -> Answer {
    match Here::of(context, params, None) {
        Ok(Some(place)) => answer(&place).map_or(Answer::Result(Json::Null), Into::into),
        Ok(None) => Answer::Result(Json::Null),
        Err(answer) => answer,
    }
}

fn in_range<T: Into<Answer>>(
    context: &mut Context<'_>,
    params: &Json,
    answer: impl FnOnce(&Here<'_>, Span) -> Option<T>,
) -> Answer {
    let range = match read::<Range>(params.get("range").cloned().unwrap_or_default()) {
        Ok(range) => range,
        Err(answer) => return answer,
    };
    in_document(context, params, |place| answer(place, place.span(range)))
}

/// Our own method: the text behind an address of ours, a module that is part of the program or the page of a code.
fn text(context: &Context<'_>, params: &Json) -> Answer {
    let address = params.get("uri").and_then(Json::as_str).unwrap_or_default();
    let Some(rest) = address.strip_prefix(uri::EMBEDDED) else {
        return Answer::Invalid("`uri` is no address of ours".to_owned());
    };
    if let Some(code) = rest.strip_prefix("errors/") {
        let page = (context.setup.page)(code.trim_end_matches(".md"));
        return Answer::Result(page.map_or(Json::Null, Json::from));
    }
    if let Some(namespace) = rest.strip_prefix("models/") {
        let namespace = namespace.trim_end_matches(".cf");
        let text = setpoint_cf::project::built_in_text(&context.setup.library, namespace);
        return Answer::Result(text.map_or(Json::Null, Json::from));
    }
    let module = rest.strip_prefix("modules/").unwrap_or_default();
    let text = context.setup.library.modules.read(module).ok();
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Answer::Result(text.map_or(Json::Null, Json::from))
}

fn to_json(value: impl serde::Serialize) -> Option<Json> {
    serde_json::to_value(value).ok()
}

/// What may be large is written at once.
fn written(value: impl serde::Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(&value).ok()
}
