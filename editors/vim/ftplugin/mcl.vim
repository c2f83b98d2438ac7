" How files of the language mcl are edited: comments, and tabs as the formatter writes them.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal comments=:# commentstring=#\ %s
setlocal formatoptions-=t formatoptions+=croql
setlocal noexpandtab shiftwidth=0 softtabstop=0 tabstop=4
setlocal suffixesadd=.mcl
let &l:include = '^\s*import\s\+"\zs[^"]*'
let &l:define = '^\s*\%(class\|func\)\s'

let b:undo_ftplugin = 'setlocal comments< commentstring< formatoptions< expandtab< shiftwidth< softtabstop< tabstop< suffixesadd< include< define<'
