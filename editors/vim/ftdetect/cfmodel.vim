" Files of the model language of Setpoint. Other programs have files of this ending, too: `cf` is the type that Vim gives them.
autocmd BufRead,BufNewFile *.cf setlocal filetype=cfmodel
