"""How are experiments defined, run and stored?"""
