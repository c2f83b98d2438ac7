//! The program that an agent begins with, in any language.

use setpoint_programs::languages::compilation::{Compilation, ProgramSource};
use setpoint_programs::languages::model::{ModelCompilation, ModelWork};

use crate::model_run;
use crate::published_facts::PublishedFacts;
use crate::reload::Programs;
use crate::surroundings::Surroundings;

/// The program that an agent runs first: compiled, and right.
pub enum FirstProgram {
    /// In mcl or YAML.
    Program(Box<(ProgramSource, Compilation)>),
    /// In `.cf`.
    Model(Box<(ModelWork, ModelCompilation)>),
}

impl FirstProgram {
    /// Runs it. With `watch` a program is read again when its files change; a model always is. `facts` are those of this run's resources.
    pub(crate) fn start(self, surroundings: Surroundings, watch: bool, facts: PublishedFacts) -> Programs {
        match self {
            FirstProgram::Program(program) => {
                let (source, compilation) = *program;
                Programs::start(source, compilation, surroundings, watch)
            }
            FirstProgram::Model(model) => {
                let (model, compilation) = *model;
                model_run::start(model, compilation, surroundings, facts)
            }
        }
    }
}
