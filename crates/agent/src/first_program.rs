//! The program that an agent begins with, in any language.

use setpoint_programs::languages::compilation::{Compilation, ProgramSource};
use setpoint_programs::languages::model::{ModelCompilation, ModelWork};

use crate::published_facts::PublishedFacts;
use crate::runner::{ModelFrontend, ProgramFrontend, Programs};
use crate::surroundings::Surroundings;

/// The program that an agent runs first: compiled, and right.
pub enum FirstProgram {
    /// In mcl or YAML.
    Program(Box<(ProgramSource, Compilation)>),
    /// In `.cf`.
    Model(Box<(ModelWork, ModelCompilation)>),
}

impl FirstProgram {
    /// Runs the program. With `watch`, the runner reads a program again when its files change; it always does so for a model. `facts` are those of
    /// this run's resources.
    pub(crate) fn start(self, surroundings: Surroundings, watch: bool, facts: PublishedFacts) -> Programs {
        // A model follows its files unless it follows nothing.
        let watch = match self {
            FirstProgram::Program(_) => watch,
            FirstProgram::Model(_) => surroundings.follow,
        };
        Programs::start(surroundings.clone(), watch, |sender| match self {
            FirstProgram::Program(program) => {
                let (source, compilation) = *program;
                Box::new(ProgramFrontend::new(source, compilation, surroundings, sender))
            }
            FirstProgram::Model(model) => {
                let (model, compilation) = *model;
                Box::new(ModelFrontend::new(
                    model,
                    compilation,
                    surroundings,
                    facts,
                    &sender,
                ))
            }
        })
    }
}
