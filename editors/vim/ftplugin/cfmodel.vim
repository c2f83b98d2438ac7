" How files of the model language are edited: comments, and four spaces as the formatter writes them.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal comments=:# commentstring=#\ %s
setlocal formatoptions-=t formatoptions+=croql
setlocal expandtab shiftwidth=4 softtabstop=4 tabstop=4
setlocal suffixesadd=.cf
let &l:include = '^\s*import\s\+\zs[a-z_:]*'
let &l:define = '^\s*\%(entity\|typedef\|implementation\)\s'

let b:undo_ftplugin = 'setlocal comments< commentstring< formatoptions< expandtab< shiftwidth< softtabstop< tabstop< suffixesadd< include< define<'
