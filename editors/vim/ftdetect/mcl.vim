" Files of the language mcl.
autocmd BufRead,BufNewFile *.mcl setfiletype mcl
