//! A program that a model can include: compiled, with what it offers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostics, FileId, LoadError, Loader, Severity, SourceFile, SourceMap, Span};
use setpoint_flow::{Operation, Program, Slot};
use setpoint_host::sync::Mutex;
use setpoint_mcl::{CompileOptions, Entry};
use setpoint_value::{Capabilities, Value};

use super::interface::{Inner, Interface, Offered, classes, interface};
use super::places::Places;
use super::{ENTRY, Evaluating, INPUT, OUTPUT, RUNTIME, Surrounding, VALUE};
use crate::failure::Failure;
use crate::imposed::Imposed;
use crate::input::Input;
use crate::languages::compilation::{Compilation, ProgramSource};
use crate::module_policy::ModulePolicy;

/// A directory with a program in it, as its texts are now.
pub(super) struct ProgramModule {
    /// As the model names it.
    pub(super) directory: String,
    /// What it offers.
    pub(super) offered: Vec<Offered>,
    inner: Vec<Inner>,
    /// What the model reads.
    pub(super) interface: Interface,
    /// The program with every class that it offers: what is wrong is known from it.
    checked: Compilation,
    source: ProgramSource,
    /// The directory that it lies in, as the model names it: empty or ending in `/`.
    parent: String,
    /// The same, as the user can open it.
    root: String,
    /// The programs of single classes, as far as somebody wanted them.
    of_classes: Mutex<BTreeMap<String, Arc<ClassProgram>>>,
}

/// The program that includes one class.
pub(super) struct ClassProgram {
    pub(super) compilation: Compilation,
    program: Arc<Program>,
    /// Whom its sources ask, one for all instances.
    capabilities: Mutex<Option<Arc<dyn Capabilities>>>,
}

/// The name by which the entry knows the module.
const ALIAS: &str = "included_program";

impl ProgramModule {
    /// Compiles the program in a directory, which the model names so.
    pub(super) fn new(surrounding: &Surrounding, directory: &str) -> ProgramModule {
        let (parent, name) = directory.split_at(directory.rfind('/').map_or(0, |at| at + 1));
        let root = match parent.starts_with('/') {
            true => parent.to_owned(),
            false => format!("{}{parent}", surrounding.root),
        };
        let source = ProgramSource {
            imposed: Imposed::default(),
            deploy: None,
            argument: String::new(),
            is_yaml: false,
            options: CompileOptions::default(),
            library: surrounding.library.clone(),
            lint: true,
            modules: ModulePolicy::default(),
            model_settings: surrounding.settings.clone(),
            reporter: surrounding.reporter.clone(),
        };
        let import = format!("import \"{name}/\" as {ALIAS}\n");
        let first = compile(&source, &root, &import);
        let main = first
            .analysis
            .as_ref()
            .and_then(|analysis| Some((analysis, imported(analysis.imports(), &first.sources)?)));
        // Also of a program that is wrong: an editor shows a model beside it.
        let (offered, inner) = main.map_or_else(<_>::default, |(analysis, main)| classes(analysis, main));
        // What is bound is typed for certain where somebody uses it.
        let names = offered.iter().enumerate();
        let uses: String = names.map(|(number, class)| include(class, number)).collect();
        let mut checked = match uses.is_empty() || first.diagnostics.has_errors() {
            true => first,
            false => compile(&source, &root, &format!("{}{import}{uses}", runtime())),
        };
        let texts: Vec<(&str, &str)> = checked
            .sources
            .files()
            .map(|(_, file)| (&*file.name, &*file.text))
            .collect();
        let interface = interface(directory, &offered, &texts);
        checked.analysis = None;
        ProgramModule {
            interface,
            directory: directory.to_owned(),
            parent: parent.to_owned(),
            root,
            offered,
            inner,
            source: ProgramSource {
                lint: false,
                ..source
            },
            checked,
            of_classes: Mutex::default(),
        }
    }

    /// Whether its texts are still these.
    pub(super) fn is_current(&self, loader: &dyn Loader) -> bool {
        let read = |name: &str| -> Result<Arc<[u8]>, LoadError> {
            match name.starts_with('/') {
                true => loader.read(name),
                false => loader.read(&format!("{}{name}", self.parent)),
            }
        };
        let mut files = self
            .checked
            .sources
            .files()
            .filter(|(_, file)| !file.name.starts_with('<'));
        let is_same = |(_, file): (FileId, &SourceFile)| match read(&file.name) {
            Ok(bytes) => *bytes == *file.text.as_bytes(),
            // What stands for a model is made from its project, whose text is one of these.
            Err(_) => file.name.strip_suffix("main.mcl").is_some_and(|directory| {
                let project = format!("{directory}project.yml");
                self.checked
                    .sources
                    .files()
                    .any(|(_, file)| *file.name == *project)
            }),
        };
        !self.is_wrong() && files.all(is_same)
    }

    /// Whether something is wrong with it.
    pub(super) fn is_wrong(&self) -> bool {
        self.checked.diagnostics.has_errors()
    }

    /// What is wrong with it, among the texts of a model that imports it there.
    pub(super) fn found(&self, import: Option<Span>, sources: &mut SourceMap) -> Diagnostics {
        let mut errors = Diagnostics::new();
        let found = self.checked.diagnostics.iter();
        errors.extend(found.filter(|found| found.severity == Severity::Error).cloned());
        self.places(&self.checked.sources, import, sources)
            .diagnostics(&errors)
    }

    /// What keeps the class inside that would be this entity.
    pub(super) fn inner(&self, entity: &str, sources: &mut SourceMap) -> Option<(Span, String)> {
        let inner = self.inner.iter().find(|inner| inner.entity == entity)?;
        let places = self.places(&self.checked.sources, None, sources);
        Some((places.span(inner.span), inner.reason.clone()))
    }

    /// A place of the program among the texts of a model.
    pub(super) fn place(&self, span: Span, sources: &mut SourceMap) -> Span {
        self.places(&self.checked.sources, None, sources).span(span)
    }

    /// Where texts of the program are among those of a model.
    pub(super) fn places(
        &self,
        texts: &SourceMap,
        included: Option<Span>,
        sources: &mut SourceMap,
    ) -> Places {
        Places::new(texts, &self.parent, included, sources)
    }

    /// Files that it is made of, as absolute paths.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let compiled = self.checked.compiled.iter();
        let listed = compiled.flat_map(|compiled| compiled.files.iter().map(String::as_str));
        let read = self.checked.sources.files().map(|(_, file)| &*file.name);
        let own = listed.chain(read).filter(|name| !name.starts_with('<'));
        own.filter_map(|name| {
            let path = match name.starts_with('/') {
                true => name.to_owned(),
                false => format!("{}{name}", self.root),
            };
            std::path::absolute(path).ok()
        })
    }

    /// The program that includes a class which it offers.
    ///
    /// # Errors
    /// What is wrong, in a line. Checking has told it already.
    pub(super) fn class(&self, class: &Offered) -> Result<Arc<ClassProgram>, String> {
        let name = &class.class;
        let mut known = self.of_classes.lock();
        if let Some(program) = known.get(name) {
            return Ok(program.clone());
        }
        let name_here = self.directory.rsplit('/').next().unwrap_or_default();
        let text = format!(
            "{}import \"{name_here}/\" as {ALIAS}\n{}",
            runtime(),
            include(class, 0)
        );
        let compilation = compile(&self.source, &self.root, &text);
        let program = compilation.compiled.as_ref();
        let Some(program) = program.and_then(|compiled| compiled.program.clone()) else {
            let first = compilation.diagnostics.iter().next();
            return Err(first.map(|found| found.message.clone()).unwrap_or_default());
        };
        let program = Arc::new(ClassProgram {
            compilation,
            program,
            capabilities: Mutex::default(),
        });
        known.insert(name.clone(), program.clone());
        Ok(program)
    }
}

impl ClassProgram {
    /// Whom its sources ask.
    pub(super) fn capabilities(&self, evaluating: &Evaluating) -> Result<Arc<dyn Capabilities>, Failure> {
        let mut known = self.capabilities.lock();
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let machine = &evaluating.machine;
        let files = self.compilation.program_files(machine.state_of_programs())?;
        let capabilities = machine.capabilities(files, evaluating.access)?;
        *known = Some(capabilities.clone());
        Ok(capabilities)
    }

    /// The program with these values for the inputs of the class.
    pub(super) fn with_inputs(&self, inputs: &BTreeMap<String, Value>) -> Program {
        let mut program = (*self.program).clone();
        let Some(entry) = program.templates.get_mut(program.entry.0 as usize) else {
            return program;
        };
        let constants: Vec<Option<Value>> = entry
            .nodes
            .iter()
            .map(|node| match &node.operation {
                Operation::Constant(value) => Some(value.clone()),
                _ => None,
            })
            .collect();
        let first = entry.inputs;
        let constant = |slot: &Slot| constants.get(slot.0.checked_sub(first)? as usize)?.as_ref();
        for node in &mut entry.nodes {
            let Operation::Call {
                function, arguments, ..
            } = &node.operation
            else {
                continue;
            };
            if function.module != RUNTIME || function.name != INPUT {
                continue;
            }
            let name = arguments.first().and_then(&constant).and_then(Value::as_str);
            let value = name.and_then(|name| inputs.get(&*name.to_lossy()));
            if let Some(value) = value {
                node.operation = Operation::Constant(value.clone());
            }
        }
        program
    }
}

/// Variables of the entry that hold an included class begin so.
const INSTANCE: &str = "included_class_";

fn runtime() -> String {
    format!("import \"{RUNTIME}\" as included_runtime\n")
}

/// The include of a class, with its inputs and outputs.
fn include(class: &Offered, number: usize) -> String {
    let inputs = class
        .inputs
        .iter()
        .map(|(name, _)| format!("included_runtime.{INPUT}(\"{name}\")"));
    let inputs: Vec<String> = inputs.collect();
    let arguments = match inputs.is_empty() {
        true => String::new(),
        false => format!("({})", inputs.join(", ")),
    };
    let include = format!(
        "include {ALIAS}.{}{arguments} as {INSTANCE}{number}\n",
        class.class
    );
    let outputs = class.outputs.iter().map(|(name, _)| {
        let kind = OUTPUT.kind;
        format!("{kind} \"{number} {name}\" {{\n\t{VALUE} => ${INSTANCE}{number}.{name},\n}}\n")
    });
    include + &outputs.collect::<String>()
}

fn compile(source: &ProgramSource, root: &str, text: &str) -> Compilation {
    let entry = Entry::Code {
        name: ENTRY.to_owned(),
        text: text.to_owned(),
    };
    let input = Input {
        entry,
        root: root.to_owned(),
        is_yaml: false,
    };
    Compilation::of(source, input)
}

/// The text that the import of the entry leads to.
fn imported(imports: &[(Span, FileId)], sources: &SourceMap) -> Option<FileId> {
    let mut of_entry = imports
        .iter()
        .filter(|(import, _)| &*sources.file(import.file).name == ENTRY);
    of_entry.next().map(|(_, file)| *file)
}
