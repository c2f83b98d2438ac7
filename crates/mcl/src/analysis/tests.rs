//! What holds between analyses. What one analysis knows is in the cases of `tests/cases/analysis`.

use setpoint_diagnostics::{Documents, MemoryLoader};
use setpoint_value::Registry;

use super::*;

fn entry() -> Entry {
    Entry::File("main.mcl".to_owned())
}

fn library() -> Library {
    Library::new(Registry::default(), [])
}

#[test]
fn what_did_not_change_is_not_parsed_again() {
    let disk = MemoryLoader::new()
        .with("main.mcl", "import \"lib.mcl\"\n$a = $lib.x\n")
        .with("lib.mcl", "$x = 1\n");
    let mut documents = Documents::new();
    let mut workspace = Workspace::new();
    let mut analyse = |documents: &Documents| {
        let loader = documents.over(&disk);
        let options = AnalysisOptions::default();
        workspace
            .analyse(&entry(), &options, &loader, &library())
            .expect("nobody stops it")
    };
    let before = analyse(&documents);
    assert!(documents.set("main.mcl", 1, "import \"lib.mcl\"\n$other = $lib.x\n"));
    let after = analyse(&documents);
    assert!(!Arc::ptr_eq(&before.files[0].1, &after.files[0].1));
    assert!(Arc::ptr_eq(&before.files[1].1, &after.files[1].1));
    assert_eq!(before.files[0].0, after.files[0].0, "a file keeps its number");
    let names = |analysis: &Analysis| -> Vec<String> {
        let file = analysis.files[0].0;
        let names = analysis.names_in(file).iter().filter(|name| name.is_definition);
        names
            .map(|name| analysis.sources.text(name.span).to_owned())
            .collect()
    };
    assert_eq!(names(&before), ["\"lib.mcl\"", "a"]);
    assert_eq!(names(&after), ["\"lib.mcl\"", "other"]);
}

#[test]
fn a_text_that_many_import_is_parsed_once() {
    let mut disk = MemoryLoader::new().with("lib.mcl", "func f() { 1 }\n");
    let mut main = String::new();
    for index in 0..20 {
        main.push_str(&format!("import \"m{index}.mcl\"\n"));
        disk = disk.with(format!("m{index}.mcl"), "import \"lib.mcl\"\n$x = lib.f()\n");
    }
    let disk = disk.with("main.mcl", main);
    let analysis =
        analyse(&entry(), &AnalysisOptions::default(), &disk, &library()).expect("nobody stops it");
    assert_eq!(analysis.diagnostics.len(), 0);
    assert_eq!(analysis.files().count(), 22);
    assert_eq!(analysis.sources.files().count(), 22);
    let lib = analysis.file_named("lib.mcl").expect("it is imported");
    let name = analysis.name_at(lib, 5).expect("the function's name");
    assert_eq!(analysis.references(&name.target).len(), 21);
}

#[test]
fn an_analysis_that_is_stopped_gives_nothing() {
    let disk = MemoryLoader::new().with("main.mcl", "$a = 1\n");
    let options = AnalysisOptions::default();
    options.stop.stop();
    assert!(analyse(&entry(), &options, &disk, &library()).is_none());
}

#[test]
fn what_nothing_includes_imports_nothing_for_the_program() {
    let disk = MemoryLoader::new()
        .with("main.mcl", "class unused { import \"lib.mcl\"\n$a = $lib.y }\n")
        .with("lib.mcl", "$x = 1\n");
    let analysis =
        analyse(&entry(), &AnalysisOptions::default(), &disk, &library()).expect("nobody stops it");
    assert_eq!(analysis.compiled.files, ["main.mcl"]);
    assert!(analysis.compiled.program.is_some());
    let found: Vec<_> = analysis.diagnostics.iter().collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, setpoint_diagnostics::Severity::Warning);
    assert_eq!(found[0].code.code, "E0101");
}
