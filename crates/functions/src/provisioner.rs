//! `embedded/provisioner`: the options of the `provisioner` command, each as a constant.

use setpoint_value::{CallContext, CallError, Class, Example, FunctionSpec, Module, ReadOnce, Type, Value};

macro_rules! options {
    ($($static:ident $name:literal $ty:literal $default:expr, $doc:literal;)*) => {
        $(static $static: FunctionSpec = FunctionSpec::source(
            MODULE.name,
            $name,
            &[concat!("func() ", $ty)],
            Class::Environment,
            &ReadOnce {
                read: |context, _| read(context, $name, $default),
                reads_module_directory: false,
            },
        )
        .documented($doc, match $default {
            // Without the option the call is an error.
            Default::Missing => &[],
            Default::Text(_) | Default::Nothing | Default::Bool(_) => {
                &[Example { call: concat!("provisioner.", $name, "()"), result: "" }]
            }
        });)*

        pub(crate) static MODULE: Module = Module::new(
            "embedded/provisioner",
            "The options of the `provisioner` command.",
            &[$(&$static),*],
        );
    };
}

/// The value of an option that was not given.
#[derive(Clone, Copy)]
enum Default {
    /// There is none, and asking is an error.
    Missing,
    Text(&'static str),
    Nothing,
    Bool(bool),
}

options! {
    CHECK "check" "bool" Default::Bool(false), "Whether to stop after checking.";
    CLI_ARCH "cli_arch" "str" Default::Text("x86_64"), "The architecture to install.";
    CLI_BIOS "cli_bios" "bool" Default::Bool(false), "Whether to boot in the legacy way.";
    CLI_BMC_URI "cli_bmc_uri" "str" Default::Text(""), "The management controller that powers the machine on.";
    CLI_DISTRO "cli_distro" "str" Default::Text("fedora"), "The distribution to install.";
    CLI_DNS "cli_dns" "[]str" Default::Nothing, "The name servers to offer.";
    CLI_FIREWALLD "cli_firewalld" "bool" Default::Bool(true), "Whether to open the firewall.";
    CLI_FLAVOUR "cli_flavour" "str" Default::Text("Workstation"), "The flavour to install.";
    CLI_HANDOFF_CODE "cli_handoff_code" "str" Default::Text(""), "The code that the new machine runs.";
    CLI_HANDOFF_EXEC "cli_handoff_exec" "str" Default::Text(""), "The command that the new machine runs.";
    CLI_HANDOFF_HOSTNAME "cli_handoff_hostname" "str" Default::Text(""), "The new machine's name.";
    CLI_HANDOFF_MODULE_PATH "cli_handoff_module_path" "str" Default::Text(""), "Where the new machine finds modules.";
    CLI_INTERFACE "cli_interface" "str" Default::Missing, "The network interface to serve on.";
    CLI_IP "cli_ip" "str" Default::Text("192.168.42.13/24"), "The address of the machine to install.";
    CLI_LUKS "cli_luks" "bool" Default::Bool(true), "Whether to encrypt the disk.";
    CLI_MAC "cli_mac" "str" Default::Text(""), "The hardware address of the machine to install; empty for any.";
    CLI_MIRROR "cli_mirror" "str" Default::Text(""), "The mirror to install from.";
    CLI_NETWORK "cli_network" "str" Default::Text("192.168.42.0/24"), "The network to serve; empty for none.";
    CLI_PACKAGES "cli_packages" "[]str" Default::Nothing, "Further packages to install.";
    CLI_PART "cli_part" "str" Default::Text("plain"), "How to partition the disk.";
    CLI_PASSWORD "cli_password" "str" Default::Missing, "The root password as a SHA-512 crypt text.";
    CLI_PREFIX "cli_prefix" "str" Default::Missing, "The directory for downloads.";
    CLI_ROUTER "cli_router" "str" Default::Text("192.168.42.1/24"), "The own address.";
    CLI_RSYNC "cli_rsync" "str" Default::Text(""), "The mirror to copy from.";
    CLI_VERSION "cli_version" "str" Default::Missing, "The version to install.";
}

fn read(context: &CallContext<'_>, name: &str, default: Default) -> Result<Value, CallError> {
    let Some(value) = context.capabilities.provisioner_option(name) else {
        return match default {
            Default::Text(text) => Ok(Value::str(text)),
            Default::Nothing => Ok(Value::list(Type::Str, [])),
            Default::Bool(value) => Ok(Value::Bool(value)),
            Default::Missing => Err(CallError::fatal(format!(
                "func `embedded/provisioner.{name}()` has nil value"
            ))),
        };
    };
    if value.ty() == *context.result {
        Ok(value)
    } else {
        Err(CallError::fatal(format!(
            "the option is of type {}, not {}",
            value.ty(),
            context.result
        )))
    }
}
