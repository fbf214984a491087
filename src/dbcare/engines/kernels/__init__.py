"""How do plain Python rules and loops become machine code that is kept on disk?"""
